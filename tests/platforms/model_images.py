"""Pictures for tests, what the model APIs refuse of pictures in a request, and how each vendor puts a refusal."""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.platforms.model_script import Refuses

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A red pixel."""
GIF = bytes.fromhex("47494638396101000100800000ff000000000021f90400000000002c00000000010001000002024401003b")
"""Another one."""

_BEGINNINGS = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
_TYPES = sorted(f"image/{name}" for name in _BEGINNINGS)
_DATA_URL = re.compile(r"data:image/(\w+);base64,(.*)", re.DOTALL)
_MAX_MESSAGES_BASE64 = 5 * 1024 * 1024
_MAX_CHAT_BYTES = 20 * 1024 * 1024
_UNSUPPORTED = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)


def picture(number: int, size: int = len(PNG)) -> bytes:
    """Return a picture of so many bytes, at least some 80; another number is another picture."""
    return PNG + number.to_bytes(4) + bytes(max(0, size - len(PNG) - 4))


def chat_image(part: Mapping[str, Any], place: str) -> Iterator[str]:
    """Check a part of type `image_url` of Chat Completions."""
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        yield f"Invalid type for '{place}.image_url': expected an object with a url."
        return
    for unknown in sorted(set(image) - {"url", "detail"}):
        yield f"Unknown parameter: '{place}.image_url.{unknown}'."
    yield from _data_url(image["url"], f"{place}.image_url.url")


def responses_image(part: Mapping[str, Any], place: str) -> Iterator[str]:
    """Check a part of type `input_image` of Responses."""
    for unknown in sorted(set(part) - {"type", "image_url", "file_id", "detail"}):
        yield f"Unknown parameter: '{place}.{unknown}'."
    if part.get("detail") not in {"auto", "low", "high"}:
        yield f"Invalid value: '{part.get('detail')}'. Supported values are: 'low', 'high', and 'auto'."
    if not isinstance(part.get("image_url"), str):
        yield f"Invalid type for '{place}.image_url': expected a string."
        return
    yield from _data_url(part["image_url"], f"{place}.image_url")


def messages_image(block: Mapping[str, Any], place: str) -> Iterator[str]:
    """Check a block of type `image` of Messages."""
    for unknown in sorted(set(block) - {"type", "source", "cache_control"}):
        yield f"{place}.image.{unknown}: Extra inputs are not permitted"
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        yield f"{place}.image.source: this server takes pictures as base64 only"
        return
    mime, text = source.get("media_type"), source.get("data")
    if mime not in _TYPES:
        yield f"{place}.image.source.base64.media_type: Input should be {' or '.join(map(repr, _TYPES))}"
        return
    if not text:
        yield f"{place}.image.source.base64: image cannot be empty"
        return
    data = _decoded(text)
    if data is None:
        yield f"{place}.image.source.base64: invalid base64 data"
        return
    if len(text) > _MAX_MESSAGES_BASE64:
        yield (
            f"{place}.image.source.base64: image exceeds 5 MB maximum: {len(text)} bytes > {_MAX_MESSAGES_BASE64} bytes"
        )
    if not data.startswith(_BEGINNINGS[mime.removeprefix("image/")]):
        yield f"{place}.image.source.base64.data: Image does not match the provided media type {mime}"


def _data_url(url: str, place: str) -> Iterator[str]:
    match = _DATA_URL.fullmatch(url)
    data = _decoded(match[2]) if match else None
    if match is None or data is None:
        yield f"Invalid '{place}'. Expected a base64-encoded data URL with an image MIME type."
    elif match[1] not in _BEGINNINGS or not data.startswith(_BEGINNINGS[match[1]]):
        yield _UNSUPPORTED
    elif len(data) > _MAX_CHAT_BYTES:
        yield _UNSUPPORTED.replace("image has of", "image is below 20 MB in size and is of")


def _decoded(text: object) -> bytes | None:
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error:
        return None


def _openai(status: int, message: str, code: str | None) -> Refuses:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Refuses(status=status, body=json.dumps({"error": error}))


def _anthropic(status: int, kind: str, message: str) -> Refuses:
    error = {"type": kind, "message": message}
    return Refuses(status=status, body=json.dumps({"type": "error", "error": error, "request_id": "req_1"}))


REJECTIONS = {
    "openai": (
        _openai(400, _UNSUPPORTED, "invalid_image_format"),
        _openai(400, "The image data you provided does not represent a valid image.", "invalid_value"),
        _openai(400, "Invalid content type. image_url is only supported by certain models.", None),
        _openai(
            400,
            "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, "
            "expected `text` at line 1 column 9",
            "invalid_request_error",
        ),
        _openai(400, "'messages.1' : for 'role:user' the following must be satisfied[content must be a string]", None),
        Refuses(status=404, body='{"error":{"message":"No endpoints found that support image input","code":404}}'),
        Refuses(
            status=500,
            body='{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may '
            'need to provide the mmproj","type":"server_error"}}',
        ),
    ),
    "openai_responses": (
        _openai(400, _UNSUPPORTED, "invalid_image_format"),
        _openai(400, "The image data you provided does not represent a valid image.", "image_parse_error"),
    ),
    "anthropic": (
        _anthropic(400, "invalid_request_error", "Could not process image"),
        _anthropic(
            400,
            "invalid_request_error",
            "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/png",
        ),
    ),
}
"""How the servers of each kind refuse pictures: what is no picture, what they cannot see."""

TOO_LARGE = {
    "openai": (
        Refuses(status=413, body="<html><head><title>413 Request Entity Too Large</title></head></html>"),
        _openai(400, "At most 1 image(s) may be provided in one request.", "BadRequestError"),
        _openai(413, "Request Entity Too Large", "request_too_large"),
    ),
    "openai_responses": (Refuses(status=413),),
    "anthropic": (
        _anthropic(413, "request_too_large", "Request exceeds the maximum size"),
        _anthropic(
            400,
            "invalid_request_error",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6275800 bytes > 5242880 bytes",
        ),
        _anthropic(
            400,
            "invalid_request_error",
            "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed "
            "size for many-image requests: 2000 pixels",
        ),
    ),
}
"""How they refuse too many bytes, pictures or pixels."""
