"""Words of a text as memory compares them, how well an entry fits a question, and the question for the full-text index.

All of it is pure, and none of it is relative: a score depends on the question and the one entry, so that no other row,
be it somebody else's, moves it.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_QUESTION_CHARACTERS = 4_000
MAX_QUESTION_WORDS = 48
"""Of a long message the first words count."""
MAX_WORD_CHARACTERS = 64
KEY_WEIGHT = 1.5
"""A word of the key says more of what an entry is about than one of its text."""
AKIN = 0.8
"""What a word counts that shares its beginning with the one asked for: another form of the word, most likely."""
BARELY_AKIN = 0.6
AKIN_PREFIX = 3
"""Letters that two forms of a word share at least."""

# Scripts that put no blanks between words; pairs of neighbouring characters stand in for words there.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Accents, not the vowel signs of scripts that cannot be read without them.
_ACCENTS = re.compile("[\u0300-\u036f]")

_COMMON = (
    # English, German, French, Spanish, Italian, Portuguese, Dutch, Russian: what says nothing of what a text is about.
    """
    a about after again all also am an and any are as at be because been but by can could did do does for from get go
    had has have he hello her here hi him his how i if in into is it its just know let like ll make may me might more
    my need no not now of off on one or our out over please re remember s she should so some such t tell thank thanks
    than that the their them then there these they this those to too us ve very want was we were what when where which
    who why will with would yes you your
    aber als am an auch auf aus bei bin bis bist bitte da dann das dass dein dem den der des die dies dir doch du ein
    eine einem einen einer er es fur hab habe haben hat ich ihr im in ist ja kann kein man mein meine mich mir mit nach
    nein nicht noch nur ob oder schon sein sich sie sind so und uns vom von war was weil wenn wer wie wir wird wo zu zum
    zur
    au aux avec ce ces cette dans de des du elle en est et eu il ils je la le les leur lui ma mais mes mon ne nous ou
    par pas pour qu que qui quoi sa se ses son sont sur ta te tes toi ton tu un une vous y
    al como con cual cuando de del donde e el ella en era es esta este esto hay lo los las mas me mi mis muy no nos o
    para pero por que quien se si sin son su sus te tu un una uno y ya yo
    che chi ci come cosa da dal dei del della di dove e ed gli ha ho il io la le lo ma mi mia mio ne nel non per piu
    quale quando questo se si sono su sul ti tra tu un una
    ao aos as com como da das do dos ela ele em era essa esse eu foi isso isto ja lhe mais mas meu minha na nas nao nem
    no nos o os ou para pela pelo por qual quando que quem se sem ser seu sua te tem um uma voce
    aan bij dan dat de deze die dit een en er het hij hoe ik in is je kan maar me met mij mijn naar niet nog of om ook
    op te tot uit van voor wat we wel wie wij ze zijn zo
    а без бы был была были быть в вас вот вы где да для до его ее если есть еще и из или им их к как когда кто ли меня
    мне мой моя мы на нас не нет но ну о об он она они от по при с со так там то ты у что это этот я
    """
)


def fold(text: str) -> str:
    """A text in the form in which memory compares: no case, no accents, no compatibility forms, single blanks."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()))
    return " ".join(unicodedata.normalize("NFC", plain).split())


_STOP_WORDS = frozenset(fold(_COMMON).split())


def words(text: str) -> list[str]:
    """The words of a text, each once, in its order; none of those that every text has."""
    folded = fold(text)
    runs = "".join(ch if unicodedata.category(ch)[0] in "LNM" else " " for ch in folded).split()
    found = (word[:MAX_WORD_CHARACTERS] for run in runs for word in _split(run))
    return list(dict.fromkeys(word for word in found if word not in _STOP_WORDS))


def question_words(text: str) -> list[str]:
    """The words of a question that are looked for."""
    return words(text[:MAX_QUESTION_CHARACTERS])[:MAX_QUESTION_WORDS]


def match_expression(owner_words: Iterable[str], asked: Iterable[str]) -> str:
    """What the full-text index is asked: rows of these owners that have a word that may be akin to one asked for.

    Each term is a quoted string, its quotes doubled, so none is read as an operator (FTS5, section 3.1).

    Args:
        owner_words: As `owner_word` makes them; none: rows of anybody, for a caller who looks at the owners himself.
        asked: At least one word.
    """
    terms = " OR ".join(_term(word) for word in asked)
    owners = " OR ".join(_quoted(word) for word in owner_words)
    having = f"{{key_words text_words}} : ({terms})"
    return f"owner : ({owners}) AND {having}" if owners else having


def owner_word(owner: str) -> str:
    """An owner as one word of the index; no two owners have the same."""
    return owner.encode("utf-8").hex()


def relevance(asked: Iterable[str], key: Sequence[str], text: Sequence[str]) -> float:
    """How well an entry fits a question, from 0 (not at all) to 1.

    Each word that is asked for and is there halves the doubt: one gives 0.5, two 0.75. Words of the key count more,
    other forms of a word less.

    Args:
        asked: `question_words` of the question.
        key: `words` of the entry's key.
        text: `words` of its text.
    """
    by_beginning: dict[str, list[tuple[str, float]]] = {}
    for weight, group in ((KEY_WEIGHT, key), (1.0, text)):
        for word in group:
            by_beginning.setdefault(word[:AKIN_PREFIX], []).append((word, weight))
    evidence = 0.0
    for word in asked:
        near = by_beginning.get(word[:AKIN_PREFIX], ())
        evidence += max((weight * _kinship(word, other) for other, weight in near), default=0.0)
    return float(1.0 - 2.0**-evidence)


def _kinship(one: str, other: str) -> float:
    """How much two words that begin alike count as the same one, from 0 to 1."""
    if one == other:
        return 1.0
    # 2024 is no form of 2025.
    if any(ch.isdigit() for ch in one + other):
        return 0.0
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    endings = max(len(one), len(other)) - shared
    if shared > AKIN_PREFIX and endings <= AKIN_PREFIX:
        return AKIN
    return BARELY_AKIN if shared == AKIN_PREFIX and endings == 1 else 0.0


def _split(run: str) -> Iterable[str]:
    """The words of a run of letters: itself, or pairs where its script has no blanks."""
    start = 0
    for match in _UNSPACED.finditer(run):
        if match.start() > start:
            yield run[start : match.start()]
        block = match[0]
        yield from (block[at : at + 2] for at in range(len(block) - 1)) if len(block) > 1 else (block,)
        start = match.end()
    if start < len(run):
        yield run[start:]


def _term(word: str) -> str:
    if len(word) < AKIN_PREFIX:
        return _quoted(word)
    return f"{_quoted(word[: max(AKIN_PREFIX, len(word) - 2)])} *"


def _quoted(word: str) -> str:
    # To SQLite a text ends at a NUL, and with it the closing quote would be gone.
    return '"' + word.replace("\0", "").replace('"', '""') + '"'
