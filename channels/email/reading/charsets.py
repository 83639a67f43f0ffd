"""Bytes to text: by the charset that a mail names, and sensibly when that is wrong, unknown or missing."""

from __future__ import annotations

import re
from encodings.aliases import aliases

# The text codecs of Python that mails are written in. What is not here (idna, rot13, zlib, undefined ...) is no
# charset: it raises, imports something, or unpacks a bomb.
_CODECS = frozenset(
    {
        *(f"iso8859_{number}" for number in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
        *(f"cp{number}" for number in (437, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869)),
        *(f"cp{number}" for number in (874, 932, 949, 1125, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)),
        *("ascii", "utf_7", "utf_8", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"),
        *("big5hkscs", "gb18030", "hz", "euc_jp", "euc_jis_2004", "shift_jis_2004", "johab"),
        *("iso2022_jp", "iso2022_jp_2004", "iso2022_jp_ext", "iso2022_kr"),
        *("koi8_r", "koi8_t", "koi8_u", "kz1048", "ptcp154"),
        *("mac_cyrillic", "mac_greek", "mac_iceland", "mac_latin2", "mac_roman", "mac_turkish"),
    }
)
# Mail programs name an old set and write its extension; names that Python does not know.
_SUPERSETS = {
    "ansi_x3_4_1968": "ascii",
    "big5": "big5hkscs",
    "big5_eten": "big5hkscs",
    "cp936": "gb18030",
    "cp950": "big5hkscs",
    "cp_850": "cp850",
    "cseuckr": "cp949",
    "csgb2312": "gb18030",
    "csiso2022jp": "iso2022_jp_ext",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gb_2312_80": "gb18030",
    "gbk": "gb18030",
    "iso2022_jp": "iso2022_jp_ext",
    "iso2022_jp_1": "iso2022_jp_ext",
    "iso2022_jp_2": "iso2022_jp_ext",
    "iso8859_11": "cp874",
    "iso_8859_11": "cp874",
    # Hebrew and Arabic in the order of reading, told apart from that of the eye by a suffix (RFC 1556).
    "iso_8859_6_e": "iso8859_6",
    "iso_8859_6_i": "iso8859_6",
    "iso_8859_8_e": "iso8859_8",
    "iso_8859_8_i": "iso8859_8",
    "koi": "koi8_r",
    "koi8": "koi8_r",
    "koi8_ru": "koi8_u",
    "ks_c_5601_1987": "cp949",
    "ksc5601": "cp949",
    "latin_1": "cp1252",
    "macintosh": "mac_roman",
    "shift_jis": "cp932",
    "tis_620": "cp874",
    "unicode_1_1_utf_7": "utf_7",
    "windows_31j": "cp932",
    "windows_874": "cp874",
    "windows_936": "gb18030",
    "windows_949": "cp949",
    "x_euc_jp": "euc_jp",
    "x_gbk": "gb18030",
    "x_mac_cyrillic": "mac_cyrillic",
    "x_mac_roman": "mac_roman",
    "x_sjis": "cp932",
    "x_windows_949": "cp949",
}
_MOST_LABEL_CHARACTERS = 60
_REPLACEMENT = "\ufffd"
_BYTE_ORDER_MARK = "\ufeff"
_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_:.+-]{1,60})", re.IGNORECASE)
_META_WITHIN = 2_000


def codec_of(label: str) -> str | None:
    """The codec that a charset's name means; None: it is no charset that we know."""
    name = re.sub(r"[^a-z0-9]+", "_", label[:_MOST_LABEL_CHARACTERS].partition("*")[0].lower()).strip("_")
    # Python's table is read without asking `codecs`, which imports a module by the name that a stranger wrote.
    for each in (name, aliases.get(name, "")):
        codec = _SUPERSETS.get(each, each)
        if codec in _CODECS:
            return codec
    return None


def decode_text(data: bytes, label: str = "") -> str:
    """Decode bytes for reading: as `decode_exactly`, without NUL and without a byte order mark at the beginning."""
    return decode_exactly(data, label).replace("\0", "").removeprefix(_BYTE_ORDER_MARK)


def decode_exactly(data: bytes, label: str = "") -> str:
    """Decode bytes by the charset that a mail names.

    Where the name is missing, unknown, or cannot be true: UTF-8 when the bytes are valid UTF-8, else what was named as
    far as it goes, else windows-1252.
    """
    codec = codec_of(label)
    text = _strictly(data, codec) if codec is not None else None
    if text is None:
        text = _strictly(data, "utf_8")
    if text is None:
        text = _nearly(data, codec)
    if codec in {"utf_7", "utf_16", "utf_32"}:  # the only ones that give halves of characters
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def declared_in_html(data: bytes) -> str:
    """The charset that an HTML text names in its own head; empty when there is none."""
    found = _META.search(data[:_META_WITHIN])
    return found[1].decode("ascii") if found else ""


def _strictly(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeError:
        return None


def _nearly(data: bytes, codec: str | None) -> str:
    if codec not in {None, "ascii", "cp1252", "utf_8"}:
        return data.decode(codec or "utf_8", "replace")
    # UTF-8 with a fault keeps its good characters; where hardly anything fits it never was UTF-8.
    text = data.decode("utf_8", "replace")
    faults = text.count(_REPLACEMENT)
    good = len(text) - len(text.encode("ascii", "ignore")) - faults
    # `windows-1252` leaves five bytes without a meaning.
    return text if good >= faults else data.decode("cp1252", "replace")
