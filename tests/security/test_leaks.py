"""Secrets in answers that stream: what any draft shows, what is held back, and what stands there in the end."""

import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.security.cases import Case, ident, judge_masked, load, longest_visible, secret_text, secrets_of
from zerobot.security.leaks import LeakGuard, LeakStream
from zerobot.security.redact import LONGEST_PIECE, MASK, Redactor

CASES = [case for case in load("redact") if case["tier"] < 3]
SECRETS = ("winter-blue-owl", "p&ss w0rd/ü+=", "0123456789abcdef" * 70)
KEY = "sk-ant-api03-" + "aB3_" * 20
REDACTOR = Redactor(SECRETS)
GUARD = LeakGuard(REDACTOR)
TELLING = [
    *SECRETS,
    SECRETS[0][:9],
    KEY,
    KEY[:16],
    "ghp_" + "a1" * 18,
    "password=",
    "token: ",
    "abc12345x9",
    "https://bob:",
    "hunter22@x.test/",
    "Authorization: Bearer ",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "MIIabc\\n",
    "-----END RSA PRIVATE KEY-----",
    "eyJ" + "a" * 12 + ".",
    "Monday",
    "中文",
    "\n",
    " ",
    '"',
    ".",
    "-",
    "\\",
]


def pieces(text: str, size: int) -> list[str]:
    """A text in deltas of one size."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def streamed(stream: LeakStream, deltas: Iterable[str], *, cut: bool = False) -> list[str]:
    """What a draft shows after each delta, and at the end."""
    drafts = [""]
    for delta in deltas:
        drafts.append(drafts[-1] + stream.feed(delta))
    drafts.append(drafts[-1] + stream.finish(cut=cut))
    return drafts[1:]


def deltas_of(case: Case) -> list[str]:
    """A case's text as its stream brings it."""
    text, stream = secret_text(case), case.get("stream", {})
    if "at_secret" not in stream:
        return pieces(text, stream.get("every", len(text)))
    secret, parts = secrets_of(case)[0], case["secrets"][0]
    places = {"middle": len(secret) // 2, "end": len(secret), "prefix": len("".join(parts[:-1])) or len(parts[0])}
    ends = [text.index(secret) + places.get(cut, cut) for cut in stream["at_secret"]]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def exposed(case: Case, draft: str) -> list[str]:
    """What a draft shows of the case's secrets that it must not show."""
    wanted = {"unchanged", "keeps", "must_keep"}
    return [] if case.get("unchanged") else judge_masked({k: v for k, v in case.items() if k not in wanted}, draft)


@pytest.mark.parametrize("case", CASES, ids=ident)
def test_no_draft_shows_a_secret(case: Case) -> None:
    """However the text is cut: each draft is clean, and the last is what cleaning the whole text gives."""
    redactor = Redactor(secrets_of(case) if case.get("configured") else ())
    text = secret_text(case)
    for deltas in (deltas_of(case), *(pieces(text, size) for size in (1, 2, 3, 7, 50))):
        drafts = streamed(LeakGuard(redactor).begin(), deltas)
        assert [broken for draft in drafts for broken in exposed(case, draft)] == []
        assert drafts[-1] == redactor.clean(text)
        assert judge_masked(case, drafts[-1]) == []


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abcdefgh ikruy,;!?()*#äöü中文字\n", max_size=200), st.integers(1, 9))
def test_ordinary_text_is_never_delayed(text: str, size: int) -> None:
    """Words that no key begins with are shown with the delta that brings them, up to the word under way at most."""
    shown = ""
    stream = LeakGuard(Redactor()).begin()
    for number, delta in enumerate(pieces(text, size), 1):
        shown += stream.feed(delta)
        so_far = text[: number * size]
        word = len(so_far) - len(so_far.rstrip("abcdefghikruy"))
        assert so_far.startswith(shown)
        assert len(shown) >= len(so_far) - word
    assert shown + stream.finish(cut=False) == text


def test_what_cannot_be_a_secret_any_more_is_shown_at_once() -> None:
    """A word, an address, a number too long: held only as long as they could still begin one."""
    stream = LeakGuard(Redactor(["winter-blue-owl"])).begin()
    assert stream.feed("See winte") == "See "
    assert stream.feed("rs") == "winters"
    assert stream.feed(" at http://localhost") == " at http://localhost"
    assert stream.feed(":8080") == ":"
    assert stream.feed("/x and 1234567890123") == "8080/x and 1234567890123"
    assert stream.feed(" a sk") == " a "
    assert stream.feed("i") == "ski"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TELLING), max_size=8), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_whatever_streams_no_known_secret_gets_out(parts: list[str], sizes: list[int]) -> None:
    """Secrets in any neighbourhood, cut anywhere: whatever cleaning the whole text would mask stays unseen."""
    text = "".join(parts)
    deltas: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(deltas) % len(sizes)]
        deltas.append(text[at : at + size])
        at += size
    final = streamed(GUARD.begin(), deltas)[-1]
    cleaned = REDACTOR.clean(text)
    for secret in (*SECRETS, KEY):
        assert longest_visible(secret, final.replace(MASK, "\0")) <= max(12, longest_visible(secret, cleaned))


@pytest.mark.parametrize("size", [1, 7, 513, 5000])
def test_a_key_block_right_behind_a_long_run_is_masked(size: int) -> None:
    """Its first dashes look like the run's; what it hides, and a secret behind it, stay unseen."""
    run = "sk-" + "a1" * 400
    text = f"{run}-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34Gkx\n-----END RSA PRIVATE KEY-----\ndone"
    shown = streamed(GUARD.begin(), pieces(text, size))[-1]
    assert "MIIBOg" not in shown
    assert shown.endswith("\ndone")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*SECRETS, KEY, "x=1", "Monday", "pass word", "中"]), max_size=8), st.integers(1, 40))
def test_the_end_is_the_whole_text_masked(words: list[str], size: int) -> None:
    """For words with blanks between them, wherever the deltas are cut."""
    text = " ".join(words)
    assert streamed(GUARD.begin(), pieces(text, size))[-1] == REDACTOR.clean(text)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_an_answer_that_breaks_off_shows_no_half_secret(size: int) -> None:
    """What is held at the end is masked, whatever it was about to become; a word's first letters are not."""
    for text in (KEY[:30], SECRETS[0][:9], "password=hunter2", "x -----BEGIN PRIVATE KEY-----\nMIIB"):
        shown = streamed(GUARD.begin(), pieces("it is " + text, size), cut=True)[-1]
        assert shown.endswith(MASK)
        assert longest_visible(text, shown) <= len("password=")
    assert streamed(GUARD.begin(), ["on Mon"], cut=True)[-1] == "on Mon"


def test_a_complete_answer_may_end_like_the_beginning_of_a_key() -> None:
    """Nothing followed, so it is none."""
    assert streamed(GUARD.begin(), ["keys begin with sk-ant-", "api03-x"])[-1] == "keys begin with sk-ant-api03-x"


def test_a_key_block_is_held_until_its_end() -> None:
    """Its inside is never seen, however long it is; what follows is; an end cut in two is an end."""
    stream = GUARD.begin()
    assert stream.feed("key: -----BEGIN OPENSSH PRIVATE") == "key: "
    assert stream.feed(" KEY-----\nb3Blbn") == MASK
    assert "".join(stream.feed("NzaC1rZXktdjEAAAAA\n") for _ in range(2000)) == ""
    assert stream.feed("-----END OPENSSH PRI") == ""
    assert stream.feed("VATE KEY-----") == ""
    assert stream.feed("\nThat was it.") == "\nThat was it."


def test_at_most_512_characters_are_held() -> None:
    """A run that is longer counts as the secret that it looks like; what is behind it is shown."""
    stream = LeakGuard(Redactor()).begin()
    drafts = streamed(stream, ["jwt eyJ", *pieces("hbGciOiJI" * 200, 9), " and so on"])
    assert drafts[-1] == f"jwt {MASK} and so on"
    held = next(number for number, draft in enumerate(drafts) if MASK in draft)
    assert held * 9 <= LONGEST_PIECE + 9


def test_a_long_configured_secret_is_masked_in_pieces() -> None:
    """It is longer than what may be held, and yet nothing of it is seen."""
    shown = streamed(GUARD.begin(), pieces(f"a {SECRETS[2]} b", 10))[-1]
    assert shown.replace(MASK, "") == "a  b"


@pytest.mark.parametrize("beginning", ["sk-", "password=", "eyJ", "1:AA", "://", "-----", "token: ", "M", "a "])
def test_memory_is_bounded_whatever_comes(beginning: str) -> None:
    """Texts made of beginnings: what a stream keeps of an answer is no more than what may be held, and its context."""
    stream = LeakGuard(Redactor()).begin()
    fresh = len(pickle.dumps(stream))
    for delta in pieces(beginning * (6_000 // len(beginning)), 5):
        stream.feed(delta)
        assert len(pickle.dumps(stream)) < fresh + 3 * LONGEST_PIECE


def test_an_answer_is_looked_at_once() -> None:
    """Long answers and hostile ones in one piece or in many: one that is read again and again would not end here."""
    for beginning in ("word ", "sk-", "password=", "otpauth://", "-----BEGIN PRIVATE KEY-----", "eyJ.", "Monday, "):
        stream = GUARD.begin()
        stream.feed(beginning * 10_000)
        for delta in pieces(beginning * 2_000, 4):
            stream.feed(delta)


def test_a_key_may_follow_a_letter_of_another_alphabet() -> None:
    """Chinese has no blanks; a key in it is a key all the same."""
    text = f"密钥是{KEY}请保管"
    assert REDACTOR.clean(text) == f"密钥是{MASK}请保管"
    assert streamed(GUARD.begin(), pieces(text, 3))[-1] == f"密钥是{MASK}请保管"
