"""What is known of common programs: which start others, which options run or write, which only read.

This knowledge never allows anything by itself. It only takes away: a prefix that the owner listed still asks when the
line uses it for something else (GTFOBins lists such uses), and a grant is not offered where it would cover too much.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from zerobot.security.program_tables import (
    AWKS,
    BUILD_FILES,
    BUILTINS,
    EDITORS,
    GIT_GLOBAL,
    GIT_KNOWN,
    GIT_OPTIONS,
    GIT_SHORT,
    GIT_VERBS,
    INTERPRETERS,
    LOADERS,
    MASTERS,
    NETWORK,
    NETWORK_VERBS,
    OPTIONS,
    PLAIN,
    PRIVILEGE,
    QUIET_BUILTINS,
    READERS,
    RUNNING_VERBS,
    SCRIPT_RUNNERS,
    SED_OPTIONS,
    SED_SCRIPT,
    SHELLS,
    SUBCOMMANDS,
    VALUED,
    VERSIONED,
    WRAPPERS,
    Words,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """Which files commands execute, as far as it is known."""

    files: Words = ()
    """As they are written; a guess may be among them, and what is missing now may come."""
    sure: bool = True
    """Whether no other file can be executed. What a script itself starts is not looked at."""


def base_name(program: str) -> str:
    """The name under which a program is known: without its folder and its version."""
    name = program.rsplit("/", 1)[-1]
    versioned = VERSIONED.match(name)
    return versioned[1] if versioned else name


def starts_others(program: str) -> bool:
    """Whether a program, a builtin or a wrapper runs what its arguments say, or changes what later words mean."""
    name = base_name(program)
    return (
        name in SHELLS
        or name in WRAPPERS
        or name in PRIVILEGE
        or name in BUILTINS
        or name in MASTERS
        or name in EDITORS
        or LOADERS.match(name) is not None
    )


def is_script_runner(program: str) -> bool:
    """Whether the first plain argument of a program is a file that it executes."""
    name = base_name(program)
    return name in INTERPRETERS or name in SHELLS or name in (".", "source")


def talks_to_network(program: str) -> bool:
    """Whether a program is made for the network; others may use it too."""
    return base_name(program) in NETWORK


def needs_network(words: Words) -> bool:
    """Whether a segment is of no use without the network."""
    name = base_name(words[0])
    return name in NETWORK or (len(words) > 1 and words[1] in NETWORK_VERBS.get(name, ()))


def hazard(words: Words) -> str:
    """What a segment does that a listed prefix does not speak for; empty when nothing is known against it."""
    program = words[0]
    name = base_name(program)
    if starts_others(program):
        return f"{name} starts other programs or changes what commands mean"
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    if name in INTERPRETERS:
        return _interpreter_hazard(words)
    found = _option_in(words[1:], OPTIONS.get(name, ()))
    return f"{name} {found} runs or writes something" if found else ""


def only_reads(words: Words) -> bool:
    """Whether a segment is a known reader, used as one."""
    if words[0] not in READERS:
        return words[0] == "sed" and not hazard(words)
    return not hazard(words)


def grant_words(words: Words) -> Words:
    """The prefix of a segment that "always" would stand for: as narrow as is still of use."""
    if words[0] in READERS:
        return words[:1]
    if words[0] in SUBCOMMANDS and len(words) > 1 and re.fullmatch(r"[a-z][\w:-]*", words[1]):
        return words[:2]
    return words


def is_narrow(prefix: Words) -> bool:
    """Whether whatever begins with these words, as `grant_words` gives them, is of one kind."""
    return prefix[0] in READERS or (len(prefix) == 2 and prefix[0] in SUBCOMMANDS)


def executed(segments: Iterable[Words]) -> Executed:
    """The files that commands execute one after the other.

    It is sure only where each command runs nothing, or runs exactly what it names, and none beside it could have moved,
    written or fed what it names: before it, or at the same time in a pipe.
    """
    files: dict[str, None] = {}
    sure, acting, folder = True, 0, ""
    for words in segments:
        part = _executed(words)
        sure = sure and part.sure
        acting += not only_reads(words)
        for file in part.files:
            files[file] = None
            if folder and not file.startswith("/"):
                files[f"{folder}/{file}"] = None
        if words[0] == "cd" and len(words) == 2:
            folder = words[1] if words[1].startswith("/") or not folder else f"{folder}/{words[1]}"
    return Executed(files=tuple(files), sure=sure and (not files or acting == 1))


def runs_nothing(words: Words) -> bool:
    """Whether a command is known to execute no file besides its own program."""
    if only_reads(words) or words[0] in QUIET_BUILTINS:
        return True
    return (words[0] in PLAIN or words[0] in AWKS) and not hazard(words)


def _executed(words: Words) -> Executed:
    if runs_nothing(words):
        return Executed()
    program, name = words[0], base_name(words[0])
    own = (program,) if "/" in program else ()
    if name in AWKS and program not in AWKS:
        return Executed(files=own, sure=False)
    if is_script_runner(program):
        told = len(words) > 1 and words[1] != "" and words[1][0] not in "-+"
        # An interpreter of the workspace brings its own surroundings, such as a virtual environment.
        sure = told and name in SCRIPT_RUNNERS and (not own or program.startswith("/"))
        return Executed(files=(*own, *_scripts(words)), sure=sure)
    if own and not starts_others(program):
        return Executed(files=own, sure=not hazard(words))
    behind = _behind(words) if starts_others(program) else ()
    return Executed(files=(*own, *behind, *BUILD_FILES.get(name, ())), sure=False)


def _scripts(words: Words) -> Words:
    """The words of an interpreter's line that may be its script."""
    if base_name(words[0]) in AWKS:
        return tuple(words[at + 1] for at, word in enumerate(words[:-1]) if word == "-f")
    found: list[str] = []
    before = ""
    for word in words[1:]:
        if before == "-m":
            module = word.replace(".", "/")
            return (*found, f"{module}.py", f"{module}/__main__.py")
        if before in ("-c", "-e"):
            break
        if word[:1] not in ("-", "+"):
            found.append(word)
            if before not in VALUED:
                break
        before = word
    return tuple(found)


def _behind(words: Words) -> Words:
    """What a wrapper may start: files given by a path, and the scripts of interpreters that it names."""
    found: list[str] = []
    for at, word in enumerate(words[1:], start=1):
        if base_name(word) in SHELLS or base_name(word) in INTERPRETERS:
            found += _scripts(words[at:])
        elif "/" in word and not word.startswith("-"):
            found.append(word)
    return tuple(found)


def _option_in(arguments: Sequence[str], options: Sequence[str]) -> str:
    before = ""
    for word in arguments:
        # Behind an option that takes a value, it is that value, and options go on (`rg -e -- --pre=x`).
        if word == "--" and not before.startswith("-"):
            return ""
        before = word
        for option in options:
            if _uses(word, option):
                return option
    return ""


def _uses(word: str, option: str) -> bool:
    if option.startswith("--"):
        given = word.partition("=")[0]
        # getopt_long takes any unambiguous beginning.
        return len(given) > 2 and option.startswith(given)
    if len(option) == 2 and word.startswith("-") and not word.startswith("--"):
        # Short options come bundled: `-no x` is `-n -o x`.
        return option[1] in word[1:]
    # Long ones with one dash are also taken with two, and with their value in the same word.
    return word.partition("=")[0] in (option, f"-{option}")


def _find_hazard(words: Words) -> str:
    found = next((word for word in words[1:] if word in OPTIONS["find"]), "")
    return f"find {found} runs or writes something" if found else ""


def _tar_hazard(words: Words) -> str:
    bundled = words[1] if len(words) > 1 and not words[1].startswith("-") else ""
    if set(bundled) & set("IF"):
        return "tar starts another program"
    found = _option_in(words[1:], OPTIONS["tar"])
    return f"tar {found} starts another program" if found else ""


def _git_hazard(words: Words) -> str:
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        if _option_in(rest[:1], GIT_GLOBAL):
            return f"git {rest[0].partition('=')[0]} changes which programs git starts"
        rest.pop(0)
    if not rest:
        return ""
    verb, arguments = rest[0], rest[1:]
    if verb in GIT_VERBS:
        return f"git {verb} can start other programs"
    if verb not in GIT_KNOWN:
        return f"git {verb} may be an alias for anything"
    short = tuple(f"-{letter}" for letter in GIT_SHORT.get(verb, ""))
    found = _option_in(arguments, (*GIT_OPTIONS, *short))
    if not found and any(word.startswith("ext::") for word in arguments):
        found = "ext::"
    return f"git {verb} {found} runs or writes something" if found else ""


def _sed_hazard(words: Words) -> str:
    scripts, arguments, explicit = [], list(words[1:]), False
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-e", "--expression") and arguments:
            scripts.append(arguments.pop(0))
            explicit = True
        elif option not in SED_OPTIONS:
            return f"sed {option} is not known to only read"
    if not explicit and arguments:
        scripts.append(arguments.pop(0))
    if any(word.startswith("-") and word != "-" for word in arguments):
        return "sed has options after its files"
    if all(len(script) < 500 and SED_SCRIPT.match(script) for script in scripts):
        return ""
    return "the sed script could run or write something"


def _awk_hazard(words: Words) -> str:
    arguments = list(words[1:])
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option == "-F" and arguments:
            arguments.pop(0)
        elif not re.fullmatch(r"-F[^/]{1,3}", option):
            return f"awk {option} is not known to only read"
    if not arguments or re.search(r"system|getline|print[^}]*[|>]|\||@|>|close|fflush", arguments[0]):
        return "the awk program could run or write something"
    return ""


_INLINE_CODE = re.compile(
    r"-(?:[a-zA-Z]*[ceErRpPmi]|-eval|-print|-exec|-execute|-command|-require|-import|-inspect.*)?(?:=.*)?\Z"
)


def _interpreter_hazard(words: Words) -> str:
    name, rest = base_name(words[0]), words[1:]
    if name in ("python", "pypy"):
        # They change how output is buffered and kept, and what follows is read as without them.
        rest = tuple(dropwhile(lambda word: word in ("-u", "-B"), rest))
    if not rest:
        return f"{name} would run what it is fed"
    first = rest[0]
    if first.startswith("-") and rest not in (("-V",), ("--version",)):
        detail = "runs code of the line" if _INLINE_CODE.match(first) else "may run something"
        return f"{name} {first} {detail}"
    if name in ("psql", "mysql", "sqlite3", "redis-cli", "mongosh", "bc", "dc", "m4"):
        return f"{name} runs statements that may start programs"
    return ""


_PRINTF_STORES = re.compile(r"%[-+ #'0-9.*]*[hjlLqtz]*n")


def _printf_hazard(words: Words) -> str:
    # `%n` sets a variable: `printf abc%n PATH` makes the folder 3 the one that programs come from.
    if _option_in(words[1:], OPTIONS["printf"]) or any(_PRINTF_STORES.search(word) for word in words[1:]):
        return "printf sets a variable"
    return ""


def _make_hazard(words: Words) -> str:
    found = _option_in(words[1:], OPTIONS["make"])
    if not found:
        found = next((word for word in words[1:] if "=" in word and not word.startswith("-")), "")
    return f"make {found} can start other programs" if found else ""


def _verb_hazard(words: Words) -> str:
    name = base_name(words[0])
    # Options with values may come before it, so it is looked for everywhere.
    verb = next((word for word in words[1:] if word in RUNNING_VERBS[name]), "")
    if verb:
        return f"{name} {verb} can start other programs"
    if name in INTERPRETERS:
        return _interpreter_hazard(words)
    found = _option_in(words[1:], OPTIONS.get(name, ()))
    return f"{name} {found} runs or writes something" if found else ""


_SPECIAL: Mapping[str, Callable[[Words], str]] = {
    "find": _find_hazard,
    "tar": _tar_hazard,
    "git": _git_hazard,
    "sed": _sed_hazard,
    "gsed": _sed_hazard,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk_hazard),
    "make": _make_hazard,
    "printf": _printf_hazard,
    **dict.fromkeys(RUNNING_VERBS, _verb_hazard),
}
