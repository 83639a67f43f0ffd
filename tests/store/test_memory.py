"""Memory in SQLite: owners, versions, bounds, and what is found."""

import sqlite3
import string
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.people import AGENT, ANN, BOB, new
from zerobot.core.ids import ConversationId
from zerobot.core.memory import (
    KEPT_VERSIONS,
    KEY_CHARACTERS,
    TEXT_CHARACTERS,
    MemoryBackend,
    MemoryFullError,
    MemoryKind,
    MemoryOwner,
    MemorySource,
)
from zerobot.store.database import Database, open_database
from zerobot.store.memory import OWNERS_IN_INDEX, SqliteMemory, repoint
from zerobot.store.memory_words import match_expression, owner_word, question_words, relevance, words
from zerobot.testing.clock import ManualClock

MINE = MemoryOwner.person(ANN)
THEIRS = MemoryOwner.person(BOB)
CHAT = MemoryOwner.conversation(ConversationId(7))
CROWD = [MemoryOwner.conversation(ConversationId(n)) for n in range(100, 101 + OWNERS_IN_INDEX)]


@pytest.fixture
def memory(database: Database, clock: ManualClock) -> SqliteMemory:
    backend: MemoryBackend = SqliteMemory(database, clock)
    assert isinstance(backend, SqliteMemory)
    return backend


async def found(memory: SqliteMemory, question: str, *owners: MemoryOwner) -> list[str]:
    """The keys of what fits, for Ann unless somebody else is named."""
    return [each.entry.key for each in await memory.recall(owners or [MINE], question, 10)]


async def texts(memory: SqliteMemory, *owners: MemoryOwner, superseded: bool = False) -> list[str]:
    """What is stored, the newest first."""
    return [entry.text for entry in await memory.list(owners or [MINE], 1000, superseded=superseded)]


async def test_an_entry_is_kept_as_it_was_said(memory: SqliteMemory, clock: ManualClock) -> None:
    """With its owner, its key and text, its kind, its source, by whom and when."""
    stored = await memory.remember(new(MINE, "  Home   city ", " Vienna\nor near it ", kind=MemoryKind.PASSING))
    (entry,) = await memory.list([MINE], 10)
    assert entry == stored.entry
    assert (entry.owner, entry.key, entry.text, entry.kind) == (
        MINE,
        "Home city",
        "Vienna\nor near it",
        MemoryKind.PASSING,
    )
    assert (entry.source, entry.written_by, entry.created_at) == (MemorySource.SAID, ANN, clock.now())


async def test_it_outlives_the_process(path: Path, clock: ManualClock) -> None:
    """Another process finds it by its words."""
    async with open_database(path) as database:
        await SqliteMemory(database, clock).remember(new(MINE, "home city", "Vienna"))
    async with open_database(path) as database:
        assert await found(SqliteMemory(database, clock), "Vienna") == ["home city"]


@pytest.mark.parametrize("others", [[THEIRS], [CHAT], [AGENT], [THEIRS, CHAT, AGENT], CROWD, []])
async def test_nobody_elses_entries_are_touched(memory: SqliteMemory, others: Sequence[MemoryOwner]) -> None:
    """By searching, listing, forgetting by id or key, restoring: who is not named does not exist."""
    earlier = (await memory.remember(new(MINE, "home city", "Graz"))).entry
    current = (await memory.remember(new(MINE, "home city", "Vienna"))).entry
    assert await memory.recall(others, "home city Vienna Graz", 10) == []
    assert await memory.list(others, 10, superseded=True) == []
    assert await memory.forget(others, current.id) is None
    assert await memory.forget(others, earlier.id) is None
    assert await memory.restore(others, earlier.id) is None
    assert [await memory.forget_key(owner, "home city") for owner in others[:3]] == [None] * len(others[:3])
    assert await texts(memory, superseded=True) == ["Vienna", "Graz"]


async def test_each_owner_has_keys_of_their_own(memory: SqliteMemory) -> None:
    """The same key elsewhere is another entry."""
    for owner, city in ((MINE, "Vienna"), (THEIRS, "Graz"), (CHAT, "Linz"), (AGENT, "Wels")):
        assert (await memory.remember(new(owner, "home city", city))).superseded is None
    assert await texts(memory, THEIRS) == ["Graz"]
    assert sorted(await texts(memory, MINE, CHAT)) == ["Linz", "Vienna"]
    assert set(await memory.owners()) == {MINE, THEIRS, CHAT, AGENT}


async def test_ids_that_look_alike_are_two_owners(memory: SqliteMemory) -> None:
    """Owners are compared whole, with their case and every character."""
    lookalikes = [MemoryOwner.person(type(ANN)("pigeon", ident)) for ident in ("a", "A", "a b", 'a"', "a%", "ä")]
    for number, owner in enumerate(lookalikes):
        await memory.remember(new(owner, "secret", f"number {number}"))
    for number, owner in enumerate(lookalikes):
        assert await texts(memory, owner) == [f"number {number}"]
        assert [each.entry.text for each in await memory.recall([owner], "secret", 10)] == [f"number {number}"]


async def test_a_key_is_corrected_and_the_old_version_kept(memory: SqliteMemory) -> None:
    """The same key, written in whatever way; the old text is not found any more, but it is still there."""
    first = (await memory.remember(new(MINE, "Home City", "Graz"))).entry
    second = await memory.remember(new(MINE, "home  city", "Vienna"))
    assert second.superseded is not None
    assert second.superseded.id == first.id
    assert await found(memory, "Graz") == []
    assert await found(memory, "Vienna") == ["home city"]
    assert await texts(memory) == ["Vienna"]
    assert await texts(memory, superseded=True) == ["Vienna", "Graz"]


async def test_only_the_same_key_supersedes(memory: SqliteMemory) -> None:
    """However much another entry has in common with it."""
    await memory.remember(new(MINE, "home city", "Ann lives in Vienna"))
    await memory.remember(new(MINE, "home town", "Ann lives in Vienna, too"))
    assert len(await texts(memory)) == 2


async def test_saying_the_same_again_changes_nothing(memory: SqliteMemory, clock: ManualClock) -> None:
    """No version more, and it is as old as it was."""
    first = await memory.remember(new(MINE, "home city", "Vienna"))
    clock.jump(60)
    assert await memory.remember(new(MINE, "home city", "Vienna")) == first
    assert await texts(memory, superseded=True) == ["Vienna"]


async def test_a_correction_is_undone(memory: SqliteMemory) -> None:
    """And redone: the versions change places, and what is current is what is found."""
    first = (await memory.remember(new(MINE, "home city", "Graz"))).entry
    second = (await memory.remember(new(MINE, "home city", "Vienna"))).entry
    undone = await memory.restore([MINE], first.id)
    assert undone is not None
    assert (undone.entry.id, undone.superseded and undone.superseded.id) == (first.id, second.id)
    assert await found(memory, "Graz") == ["home city"]
    assert await found(memory, "Vienna") == []
    assert await memory.restore([MINE], first.id) is None
    assert await memory.restore([MINE], second.id) is not None
    assert await texts(memory) == ["Vienna"]


async def test_forgetting_takes_all_versions(memory: SqliteMemory) -> None:
    """Nothing of it is left, in the rows or in the index."""
    await memory.remember(new(MINE, "home city", "Graz"))
    current = (await memory.remember(new(MINE, "home city", "Vienna"))).entry
    assert await memory.forget([MINE], current.id) == current
    assert await texts(memory, superseded=True) == []
    assert await found(memory, "home city Vienna Graz") == []
    assert await memory.forget([MINE], current.id) is None


async def test_an_earlier_version_is_forgotten_alone(memory: SqliteMemory) -> None:
    """Somebody may want just that one gone."""
    earlier = (await memory.remember(new(MINE, "home city", "Graz"))).entry
    await memory.remember(new(MINE, "home city", "Vienna"))
    assert await memory.forget([MINE], earlier.id) is not None
    assert await texts(memory, superseded=True) == ["Vienna"]


async def test_a_key_is_forgotten_as_it_is_compared(memory: SqliteMemory) -> None:
    """Without case and odd blanks."""
    await memory.remember(new(MINE, "Home City", "Vienna"))
    gone = await memory.forget_key(MINE, " home   CITY ")
    assert gone is not None
    assert gone.text == "Vienna"
    assert await memory.forget_key(MINE, "home city") is None


async def test_an_owner_has_a_bound(database: Database, clock: ManualClock) -> None:
    """Beyond it there is a refusal; corrections still work, others are not concerned, and forgetting makes room."""
    memory = SqliteMemory(database, clock, entries=5)
    for number in range(5):
        await memory.remember(new(MINE, f"key {number}", "x"))
    with pytest.raises(MemoryFullError, match="5 memories"):
        await memory.remember(new(MINE, "one more", "x"))
    await memory.remember(new(MINE, "key 1", "y"))
    await memory.remember(new(THEIRS, "key 1", "y"))
    await memory.forget_key(MINE, "key 2")
    await memory.remember(new(MINE, "one more", "x"))
    assert len(await texts(memory)) == 5


async def test_there_is_no_way_around_the_bound(database: Database, clock: ManualClock) -> None:
    """What was forgotten has no version left that could come back beside another entry."""
    memory = SqliteMemory(database, clock, entries=1)
    first = (await memory.remember(new(MINE, "a", "x"))).entry
    second = (await memory.remember(new(MINE, "a", "y"))).entry
    await memory.forget([MINE], second.id)
    await memory.remember(new(MINE, "b", "z"))
    assert await memory.restore([MINE], first.id) is None
    assert await texts(memory) == ["z"]


async def test_versions_have_a_bound(memory: SqliteMemory) -> None:
    """The latest ones are kept."""
    for number in range(KEPT_VERSIONS + 5):
        await memory.remember(new(MINE, "weight", f"{number} kg"))
    assert await texts(memory, superseded=True) == [f"{n} kg" for n in reversed(range(4, KEPT_VERSIONS + 5))]


@pytest.mark.parametrize(
    ("key", "text"),
    [("", "x"), (" \n", "x"), ("k" * (KEY_CHARACTERS + 1), "x"), ("k", " "), ("k", "x" * (TEXT_CHARACTERS + 1))],
)
async def test_what_says_nothing_or_too_much_is_refused(memory: SqliteMemory, key: str, text: str) -> None:
    """Keys and texts have bounds."""
    with pytest.raises(ValueError, match="characters"):
        await memory.remember(new(MINE, key, text))


@pytest.mark.parametrize("source", [MemorySource.SAID, MemorySource.CONTENT, MemorySource.SCHEDULE])
async def test_only_operators_write_for_all(memory: SqliteMemory, source: MemorySource) -> None:
    """An agent's entry from anywhere else is refused."""
    with pytest.raises(ValueError, match="operators"):
        await memory.remember(new(AGENT, "k", "x", source=source))


async def test_half_characters_are_stored_too(memory: SqliteMemory) -> None:
    """JSON from a model may carry them."""
    await memory.remember(new(MINE, "k\ud800", "text \ud83d"))
    assert await texts(memory) == ["text \ufffd"]
    assert await memory.forget_key(MINE, "k\ud800") is not None


async def test_conversations_that_become_one_share_what_they_knew(database: Database, memory: SqliteMemory) -> None:
    """Where both had a key, that of the kept one counts and the other's is an earlier version."""
    kept, lost = ConversationId(1), ConversationId(2)
    of_kept, of_lost = MemoryOwner.conversation(kept), MemoryOwner.conversation(lost)
    await memory.remember(new(of_kept, "topic", "trains"))
    await memory.remember(new(of_lost, "topic", "boats"))
    await memory.remember(new(of_lost, "place", "harbour"))
    await memory.remember(new(of_lost, "place", "station"))
    await database.write(lambda db: repoint(db, kept=kept, lost=lost))
    assert sorted(await texts(memory, of_kept)) == ["station", "trains"]
    assert sorted(await texts(memory, of_kept, superseded=True)) == ["boats", "harbour", "station", "trains"]
    assert await texts(memory, of_lost, superseded=True) == []
    assert await found(memory, "station trains boats harbour", of_kept) == ["place", "topic"]


# -- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "key", "text"),
    [
        ("Where do I LIVE, in which city?", "home city", "Vienna"),
        ("any birthdays?", "birthday", "3 May"),
        ("Wann hat meine Mutter Geburtstag?", "Geburtstage", "Mutter: 3. Mai"),
        ("когда день рождения мамы", "мама", "3 мая"),
        ("tea?", "drink", "likes TEA"),
        ("cats", "pet", "one cat"),
        ("uber", "verkehr", "\u00dcber die Br\u00fccke"),
        ("brucke", "weg", "die Br\u00fccke"),
        ("\u4eac\u90fd\u306f\u3069\u3053", "\u65c5\u884c", "\u6765\u5e74\u4eac\u90fd\u306b\u884c\u304f"),
        ("project a-b", "project", "a-b is late"),
        ("\uff34\uff25\uff21", "drink", "tea"),
    ],
)
async def test_questions_find_what_they_ask_for(memory: SqliteMemory, question: str, key: str, text: str) -> None:
    """Without case and accents, over forms of a word, in scripts without blanks."""
    await memory.remember(new(MINE, key, text))
    await memory.remember(new(MINE, "unrelated", "kernel 6.1 compiles"))
    assert await found(memory, question) == [key]


@pytest.mark.parametrize("question", ["", " ", "the and of", "*", '"', "NEAR(", "AND OR NOT", "owner : x", "2025"])
async def test_questions_that_ask_nothing_find_nothing(memory: SqliteMemory, question: str) -> None:
    """Common words, operators and punctuation are no words; one year is not another."""
    await memory.remember(new(MINE, "the year", "and it was 2024"))
    assert await found(memory, question) == []


@pytest.mark.parametrize(
    "question", ["a-b", 'say "hi"', "NEAR(vienna, 2)", "text:vienna", "key_words : vienna", "^vien*"]
)
async def test_operators_of_the_index_are_plain_words(memory: SqliteMemory, question: str) -> None:
    """Nothing in a question is read as syntax; its words are still looked for."""
    await memory.remember(new(MINE, "odd", f"it reads {question} here"))
    assert await found(memory, question) == ["odd"]


async def test_relevance_is_absolute(memory: SqliteMemory) -> None:
    """Other rows, be they Ann's or somebody else's, move neither an entry's score nor its place before worse ones."""
    await memory.remember(new(MINE, "mother", "birthday on 3 May"))
    question = "birthday of my mother"
    (before,) = await memory.recall([MINE], question, 10)
    for number in range(60):
        await memory.remember(new(MINE, f"birthday {number}", "birthday birthday party"))
        await memory.remember(new(THEIRS, f"mother {number}", "mother and birthday"))
    after = await memory.recall([MINE], question, 10)
    assert after[0] == before
    assert len(after) == 10
    assert [each.relevance for each in after] == sorted((each.relevance for each in after), reverse=True)


async def test_of_equals_the_newer_comes_first(memory: SqliteMemory, clock: ManualClock) -> None:
    """And the limit is kept."""
    for name in ("one", "two", "three"):
        await memory.remember(new(MINE, f"note {name}", "green tea"))
        clock.jump(1)
    assert [each.entry.key for each in await memory.recall([MINE], "tea", 2)] == ["note three", "note two"]


def test_relevance_counts_words() -> None:
    """One word half, two three quarters; one of the key more, another form less, a strange one nothing."""
    assert relevance(["tea"], [], ["tea"]) == 0.5
    assert relevance(["tea", "milk", "x"], [], ["milk", "tea"]) == 0.75
    assert relevance(["tea"], ["tea"], ["tea"]) > 0.5
    assert 0.4 < relevance(["birthdays"], [], ["birthday"]) < 0.5
    assert relevance(["tea"], [], ["team", "coffee"]) < 0.4
    assert relevance(["coffee"], ["tea"], ["milk"]) == 0.0


WORDS = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), max_size=6)


@given(WORDS, WORDS, WORDS, WORDS)
def test_more_words_in_common_are_never_less_relevant(
    asked: list[str], key: list[str], text: list[str], more: list[str]
) -> None:
    """Relevance is between 0 and 1, and grows with what an entry says."""
    score = relevance(asked, key, text)
    assert 0.0 <= score <= relevance(asked, key, [*text, *more]) <= 1.0


@given(st.text())
def test_words_are_words(text: str) -> None:
    """Cutting again changes nothing, and no word holds what could be syntax."""
    cut = words(text)
    assert words(" ".join(cut)) == cut
    assert not any(ch.isspace() or ch in string.punctuation for word in cut for ch in word)


async def test_any_text_can_be_asked_and_stored(memory: SqliteMemory, database: Database) -> None:
    """No question is a syntax error to the index, and no owner or term gets out of its quotes."""
    await memory.remember(new(MINE, "home city", "Vienna"))
    for question, owner, term in samples():
        await memory.recall([MINE, MemoryOwner.person(type(ANN)("pigeon", owner or "x"))], question, 5)
        match = match_expression([owner_word(owner or "x")], [term or "x"])
        assert await database.read(partial(hits, match=match)) == 0


def hits(db: sqlite3.Connection, match: str) -> int:
    """How many rows the index finds."""
    return len(db.execute("SELECT rowid FROM memory_words WHERE memory_words MATCH ?", (match,)).fetchall())


def samples() -> list[tuple[str, str, str]]:
    """Many questions, owners and raw terms: the nasty ones, and such as hypothesis thinks of."""
    nasty = ['"', '""', "' OR 1=1 --", ") OR (home", "*", "home*", '"home', "NEAR(home city)", "\0", "{owner} : x", "-"]
    made: list[tuple[str, str, str]] = [(each, each, each) for each in nasty]

    @settings(max_examples=50, deadline=None, database=None)
    @given(st.text(), st.text(), st.text())
    def collect(question: str, owner: str, term: str) -> None:
        made.append((question, owner.replace("\ud800", ""), term))

    collect()
    return made


def test_a_long_question_is_bounded() -> None:
    """Whatever is pasted into a chat, the index is asked for a few words."""
    assert len(question_words(" ".join(f"word{n}" for n in range(10_000)))) == 48
    assert max(map(len, question_words("x" * 100_000))) == 64
