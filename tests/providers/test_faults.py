"""What model servers say when they refuse, and what the engine may do about it."""

import json
from datetime import UTC, datetime

import pytest

from zerobot.core.errors import (
    BodyTooLargeError,
    ContextOverflowError,
    CredentialError,
    HistoryRejectedError,
    PictureRejectedError,
    ProviderError,
    RateLimitError,
)
from zerobot.providers.faults import MESSAGE_LIMIT, from_response, from_stream, retry_after

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
NO = False
YES = True

TABLE = [
    (408, "Request timeout", ProviderError, "timeout", YES),
    (409, "Conflict", ProviderError, "conflict", YES),
    (429, "Rate limit reached for m-1", RateLimitError, "rate_limited", YES),
    (429, "Too many input tokens per minute", RateLimitError, "rate_limited", YES),
    (429, "You exceeded your current quota, please check your plan", RateLimitError, "quota", NO),
    (429, "You exceeded your current quota. Please retry in 37s.", RateLimitError, "rate_limited", YES),
    (429, "insufficient_quota", RateLimitError, "quota", NO),
    (402, "Insufficient Balance", RateLimitError, "quota", NO),
    (400, "Your credit balance is too low to access the API", RateLimitError, "quota", NO),
    (500, "Internal server error", ProviderError, "server_error", YES),
    (502, "Bad gateway", ProviderError, "server_error", YES),
    (503, "Service unavailable", ProviderError, "overloaded", YES),
    (504, "Gateway timeout", ProviderError, "server_error", YES),
    (529, "Overloaded", ProviderError, "overloaded", YES),
    (401, "invalid x-api-key", CredentialError, "auth", NO),
    (403, "Your account has no access", CredentialError, "auth", NO),
    (413, "Request exceeds the maximum size", BodyTooLargeError, "body_too_large", NO),
    (413, "", BodyTooLargeError, "body_too_large", NO),
    (413, "Limit 6000 tokens, requested 7000: reduce your message size", ContextOverflowError, "context_overflow", NO),
    (400, "Too many images", BodyTooLargeError, "body_too_large", NO),
    (400, "Could not process image", PictureRejectedError, "picture_rejected", NO),
    (400, "x is not a multimodal model", PictureRejectedError, "picture_rejected", NO),
    (400, "'data:image/png;base64,/9j/4AAQ' is not a valid absolute URI", PictureRejectedError, "picture_rejected", NO),
    (400, "Unable to process input image.", PictureRejectedError, "picture_rejected", NO),
    (400, "Image input is not supported by this model", PictureRejectedError, "picture_rejected", NO),
    (404, "The model `image-generator` does not exist", ProviderError, "not_found", NO),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", ContextOverflowError, "context_overflow", NO),
    (400, "This model's maximum context length is 8192 tokens", ContextOverflowError, "context_overflow", NO),
    (400, "Please reduce the length of the messages", ContextOverflowError, "context_overflow", NO),
    (500, "the request exceeds the available context size", ContextOverflowError, "context_overflow", NO),
    (400, "The input token count (9000) exceeds the maximum", ContextOverflowError, "context_overflow", NO),
    (400, "messages.1: `tool_use` ids were found without `tool_result`", HistoryRejectedError, "history_rejected", NO),
    (400, "messages with role 'tool' must be a response to", HistoryRejectedError, "history_rejected", NO),
    (400, "messages: text content blocks must be non-empty", HistoryRejectedError, "history_rejected", NO),
    (400, "roles must alternate between user and assistant", HistoryRejectedError, "history_rejected", NO),
    (422, "Expected last role User or Tool", HistoryRejectedError, "history_rejected", NO),
    (400, "all messages must have non-empty content", HistoryRejectedError, "history_rejected", NO),
    (400, "No tool output found for function call call_1.", HistoryRejectedError, "history_rejected", NO),
    (
        400,
        "Item 'rs_1' was provided without its required following item.",
        HistoryRejectedError,
        "history_rejected",
        NO,
    ),
    (400, "The encrypted content for item rs_1 could not be verified.", HistoryRejectedError, "history_rejected", NO),
    (400, "Function call is missing a thought_signature", HistoryRejectedError, "history_rejected", NO),
    (400, "Invalid `signature` in `thinking` block", HistoryRejectedError, "history_rejected", NO),
    (400, "Unexpected role 'user' after role 'tool'", HistoryRejectedError, "history_rejected", NO),
    (400, "Encrypted content is not supported with this model.", ProviderError, "bad_request", NO),
    (400, "temperature: must be at most 1", ProviderError, "bad_request", NO),
    (404, "The model `x` does not exist", ProviderError, "not_found", NO),
    (400, "The response was filtered: content_filter", ProviderError, "filtered", NO),
]


@pytest.mark.parametrize(("status", "message", "kind", "code", "retryable"), TABLE)
def test_a_refusal_becomes_what_can_be_done_about_it(
    status: int, message: str, kind: type[ProviderError], code: str, *, retryable: bool
) -> None:
    """Status and words together say whether to wait, to shorten, to mend, or to give up."""
    error = from_response("main", status, {}, json.dumps({"error": {"message": message}}).encode(), now=NOW)
    assert (type(error), error.code, error.retryable, error.status) == (kind, code, retryable, status)


@pytest.mark.parametrize(
    ("payload", "code", "retryable"),
    [
        ({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, "rate_limited", YES),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", YES),
        ({"type": "error", "error": {"type": "api_error", "message": "oops"}}, "server_error", YES),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "server_error", NO),
        ({"type": "error", "error": {"type": "request_too_large", "message": "no"}}, "body_too_large", NO),
        ({"type": "error", "error": {"type": "authentication_error", "message": "no"}}, "auth", NO),
        ({"error": "unexpected EOF"}, "server_error", YES),
        ({"error": {"code": "429", "message": "slow"}}, "rate_limited", YES),
        ([{"error": {"code": 503, "message": "busy"}}], "overloaded", YES),
        ({"error": {"message": "Failed to call a function", "code": "tool_use_failed"}}, "server_error", YES),
        ("boom", "server_error", YES),
        ([], "server_error", YES),
        (None, "server_error", YES),
    ],
)
def test_an_error_inside_a_stream_has_no_status(payload: object, code: str, *, retryable: bool) -> None:
    """Its words, or a number that it carries, say what it is; an unknown one may pass."""
    error = from_stream("main", payload)
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT", "date": "Mon, 02 Mar 2026 10:00:10 GMT"}, 20.0),
        ({"retry-after": "Mon, 02 Mar 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds or a date, which counts from the server's own clock; nonsense is no wish."""
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 1.5s.", 1.5),
        ("Please try again in 20ms", 0.02),
        ("Please retry in 37s", 37.0),
        ("later", None),
    ],
)
def test_a_wait_that_is_only_said(message: str, seconds: float | None) -> None:
    """Some servers have no header for it."""
    assert from_response("main", 429, {}, message.encode(), now=NOW).retry_after == seconds


def test_a_web_page_is_told_without_its_tags() -> None:
    """A proxy's page becomes one line."""
    error = from_response("main", 503, {}, b"<html>\n<h1>503 Service\nUnavailable</h1></html>", now=NOW)
    assert str(error) == "main: 503 Service Unavailable (HTTP 503)"


def test_an_endless_refusal_is_cut() -> None:
    """The log gets the beginning of a server's words."""
    error = from_response("main", 500, {}, b"word " * 5000, now=NOW)
    assert len(str(error)) < MESSAGE_LIMIT + 40


@pytest.mark.parametrize(
    "words",
    [
        "the key hunter2-hunter2 is bad",
        "Authorization: Bearer abcdef",
        "key sk-abcdefghijk is bad",
        "sk-abc***xyz",
        "sk-ant-api03-abc_DEF-ghi",
    ],
)
def test_no_key_comes_back_out(words: str) -> None:
    """Neither our key nor what looks like one is repeated."""
    error = from_response("main", 400, {}, words.encode(), now=NOW, secret="hunter2-hunter2")
    for secret in ("hunter2", "abcdef", "sk-a"):
        assert secret not in str(error)


def test_a_forbidden_model_is_told_from_a_bad_key() -> None:
    """With 403 the key may be good, so the server's reason is passed on, beside the setting."""
    error = from_response("main", 403, {}, b'{"error": {"message": "m-1 is not for you"}}', now=NOW)
    assert "m-1 is not for you" in str(error)
    assert "[providers.main] api_key" in str(error)


def test_an_empty_refusal_still_says_who_and_what() -> None:
    """There is always a sentence."""
    assert str(from_response("main", 500, {}, b"", now=NOW)) == "main: the server gave no reason (HTTP 500)"
