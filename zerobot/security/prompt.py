"""The words of an approval prompt: drawn from the frozen call, escaped, and with no line that a model could fake.

Every line has a label of ours. The lines of an argument of several lines are numbered, so that none of them can pass
for a line of the prompt itself. What does not fit goes whole into an attached file.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from zerobot.core.approvals import Approval, ApprovalPrompt, ApprovalState, PromptLine, Withdrawal
from zerobot.security.access import GRANT_LIFE
from zerobot.security.own_secrets import OwnSecrets, without_secrets
from zerobot.security.redact import MASK, Redactor
from zerobot.security.visible import escape, has_hidden, is_hidden, lookalikes, one_line

MAX_LINE = 400
"""Characters of one shown line."""
MAX_SHOWN = 1_400
"""Characters of all argument lines together: with the rest it fits into one message everywhere."""
MAX_LINES = 40

# A long run of blanks or of an invisible character pushes what follows out of sight.
_RUN = re.compile(r"(.)\1{7,}", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")
_GREEK_OR_CYRILLIC = re.compile("[\u0370-\u052f]")
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_OUR_LABELS = frozenset({"arguments", "chat", "code", "does", "expires", "note", "outcome", "tool"})
"""Those that are one word; no plain name has several."""
_HOST = re.compile(r"://(?:[^/\s@]*@)?([^/\s:@?#\"']+)")

_WITHDRAWN: Mapping[str, str] = {
    Withdrawal.SUPERSEDED: "something else was written meanwhile",
    Withdrawal.STOPPED: "the turn was stopped",
    Withdrawal.UNREACHABLE: "nobody can be asked",
    Withdrawal.FAILED: "the turn failed",
}
"""The words in which the daemon withdraws a request, for people."""

NO_SECRETS = OwnSecrets()
SCHEDULE = "schedule"
"""The `platform` of an asker that is no person but a schedule."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument as text: redacted, not yet escaped."""

    name: str
    text: str


def approval_prompt(
    approval: Approval, redactor: Redactor, now: datetime, own: OwnSecrets = NO_SECRETS
) -> ApprovalPrompt:
    """Draw a prompt: with buttons while the approval is pending, with its outcome afterwards.

    Args:
        approval: As it stands in the store.
        redactor: Masks secrets; the words around them stay.
        now: UTC, for the time that is left.
        own: Tells the daemon's own secrets by their keys, so that an operator knows which would be given away.
    """
    clean = without_secrets(redactor, own)
    approval = _cleaned(approval, clean)
    arguments = [_Argument(clean(name), clean(_text_of(value))) for name, value in approval.arguments.items()]
    shown, cut = _argument_lines(arguments)
    is_open = approval.state is ApprovalState.PENDING
    whole = list(_circumstances(approval))
    if is_open and approval.grantable and approval.covers:
        whole.append(_field("always allows", f"{approval.covers}; in this chat, for {GRANT_LIFE.days} days"))
    fields = [replace(line, text=_shortened(line.text)) for line in whole]
    cut = cut or fields != whole
    lines = [
        PromptLine(kind="title", text=f"{_title(approval.state)}: {one_line(approval.tool)}"),
        *(shown or [PromptLine(kind="argument", label="arguments", text="none")]),
        *fields,
        *_notes(arguments, cut=cut),
    ]
    if is_open:
        lines.append(_field("expires", expiry_text(approval.expires_at, now)))
        lines.append(_field("code", approval.code))
    else:
        lines.append(PromptLine(kind="outcome", text=outcome_text(approval)))
    return ApprovalPrompt(
        approval=approval.id,
        code=approval.code,
        lines=tuple(lines),
        attachment=_attachment(approval, whole, arguments) if cut else None,
        open=is_open,
        grantable=approval.grantable and is_open,
        decided_by=approval.decided_by,
    )


def _cleaned(approval: Approval, clean: Callable[[str], str]) -> Approval:
    """The same without secrets in the words around the arguments: some of them quote an argument."""
    return replace(
        approval,
        tool=clean(approval.tool),
        why=clean(approval.why),
        description=clean(approval.description),
        covers=clean(approval.covers),
        reason=clean(approval.reason),
    )


def outcome_text(approval: Approval) -> str:
    """One line: what was decided, by whom, when, and why; for a pending one, that it is pending."""
    at = f" on {clock_text(approval.decided_at)}" if approval.decided_at else ""
    by = f" by {person_text(approval.decided_by_name, str(approval.decided_by))}" if approval.decided_by else ""
    because = f" Reason: {one_line(approval.reason)}" if approval.reason else ""
    match approval.state:
        case ApprovalState.PENDING:
            return "Not decided yet."
        case ApprovalState.APPROVED:
            return f"Approved{by}{at}.{because}"
        case ApprovalState.DENIED:
            return f"Denied{by}{at}. It does not run.{because}"
        case ApprovalState.EXPIRED:
            return (
                f"Expired on {clock_text(approval.decided_at or approval.expires_at)}: nobody decided. It does not run."
            )
        case ApprovalState.CANCELLED:
            why = one_line(withdrawal_text(approval.reason)) or "withdrawn"
            return f"Closed{by}{at}: {why}. It does not run."


def withdrawal_text(reason: str) -> str:
    """A stored reason for people: the daemon's own are single words."""
    return _WITHDRAWN.get(reason, reason)


def _title(state: ApprovalState) -> str:
    return {
        ApprovalState.PENDING: "Approval needed",
        ApprovalState.APPROVED: "Approved",
        ApprovalState.DENIED: "Denied",
        ApprovalState.EXPIRED: "Expired",
        ApprovalState.CANCELLED: "Closed",
    }[state]


def _circumstances(approval: Approval) -> Iterator[PromptLine]:
    if approval.asker.platform == SCHEDULE:
        yield _field("asked by", f"the schedule {approval.asker.id} (no person)")
    else:
        yield _field("asked by", person_text(approval.asker_name, str(approval.asker)))
    yield _field("chat", str(approval.place))
    if approval.description:
        yield _field("does", approval.description)
    yield _field("why asked", approval.why)
    if approval.sandbox:
        yield _field("held by", approval.sandbox)


def _field(label: str, text: str) -> PromptLine:
    return PromptLine(kind="field", label=label, text=one_line(text))


def person_text(name: str, identity: str) -> str:
    """A person for people: the name, which anybody may have chosen, and the id, which nobody can choose."""
    return f"{one_line(name)} ({one_line(identity)})" if name else one_line(identity)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- the arguments ----------------------------------------------------------------------------------------------------


def _argument_lines(arguments: list[_Argument]) -> tuple[list[PromptLine], bool]:
    """The shown lines of all arguments, and whether anything of them is not shown."""
    lines: list[PromptLine] = []
    room, cut = MAX_SHOWN, False
    for argument in arguments:
        # Whatever is left out, each argument keeps at least one line that names it.
        for label, text in _numbered(argument):
            shown, shortened = _collapsed(text)
            cut = cut or shortened
            if len(shown) > min(room, MAX_LINE):
                shown, cut = _shortened(shown, max(min(room, MAX_LINE), 40)), True
            if len(lines) >= MAX_LINES or room <= 0:
                lines.append(PromptLine(kind="argument", label=label, text="… (in the attached file)"))
                cut = True
                break
            room -= len(shown) + len(label)
            lines.append(PromptLine(kind="argument", label=label, text=shown))
    return lines, cut


def _numbered(argument: _Argument) -> Iterator[tuple[str, str]]:
    """Labels and raw lines of an argument. Long runs of empty lines are told as a count in the label."""
    name = _label(argument.name)
    if not argument.text:
        yield f"{name} (empty)", ""
        return
    # A line feed at the end begins no line; that it is there is told all the same.
    ended = argument.text.endswith("\n") and argument.text.strip("\n") != ""
    raw = argument.text[: -1 if ended else None].split("\n")
    end = " (with a line end)" if ended else ""
    if len(raw) == 1:
        yield name + end, raw[0]
        return
    number = 0
    while number < len(raw):
        last = number
        while last + 1 < len(raw) and not raw[number].strip(" \t") and not raw[last + 1].strip(" \t"):
            last += 1
        if last - number >= 3:
            yield f"{name} lines {number + 1}-{last + 1} (empty)", ""
            number = last + 1
            continue
        yield f"{name} line {number + 1}{end if number + 1 == len(raw) else ''}", raw[number]
        number += 1


def _label(name: str) -> str:
    """An argument's name; one that could pass for a label of ours is told to be an argument's."""
    plain = _PLAIN_NAME.match(name) and name.casefold() not in _OUR_LABELS
    return name if plain else f"argument {one_line(name)!r}"


def _collapsed(line: str) -> tuple[str, bool]:
    """One escaped line in which long runs are told as a count, and whether there was such a run."""
    collapsed = False

    def tell(match: re.Match[str]) -> str:
        nonlocal collapsed
        ch = match[1]
        if ch not in " \t" and not is_hidden(ch):
            return match[0]
        collapsed = True
        return f"⟨{len(match[0])} times {'blank' if ch == ' ' else one_line(ch)}⟩"

    return one_line(_RUN.sub(tell, line)), collapsed


def _shortened(text: str, limit: int = MAX_LINE) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _notes(arguments: list[_Argument], *, cut: bool) -> Iterator[PromptLine]:
    whole = "\n".join(argument.text for argument in arguments)
    if cut:
        yield _note("shown in part; the attached file has all of it")
    if MASK in whole:
        yield _note(f"{MASK} stands for a secret")
    if has_hidden(whole):
        yield _note("it holds invisible or control characters, written here as \\u{…}")
    odd = lookalikes(whole)
    if odd:
        yield _note("characters that look like others: " + ", ".join(f"{ch} (U+{ord(ch):04X})" for ch in odd[:8]))
    words = dict.fromkeys(_WORD.findall(whole)) if not whole.isascii() else {}
    mixed = [word for word in words if _LATIN.search(word) and _GREEK_OR_CYRILLIC.search(word)]
    if mixed:
        yield _note("words of mixed alphabets: " + ", ".join(_ascii(word) for word in mixed[:8]))
    for host in dict.fromkeys(_HOST.findall(whole)):
        if not host.isascii():
            yield _note(f"the host {one_line(host)} is {_ascii_host(host)}")


def _note(text: str) -> PromptLine:
    return PromptLine(kind="note", label="note", text=_shortened(text))


def _ascii(text: str) -> str:
    return "".join(ch if ch.isascii() else f"\\u{{{ord(ch):x}}}" for ch in text)


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return _ascii(host)


def _attachment(approval: Approval, fields: list[PromptLine], arguments: list[_Argument]) -> str:
    """Everything, as a text file: each line of an argument behind a bar, escaped but not cut."""
    parts = [f"Request {approval.code}", f"tool: {one_line(approval.tool)}"]
    parts += [f"{line.label}: {line.text}" for line in fields]
    for argument in arguments:
        parts.append(f"\n{_label(argument.name)}:")
        parts += [f"| {line}" for line in escape(argument.text.replace("\t", "\\t")).split("\n")]
    return "\n".join(parts) + "\n"


# -- time -------------------------------------------------------------------------------------------------------------


def clock_text(at: datetime) -> str:
    """A moment, to the minute, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def expiry_text(at: datetime, now: datetime) -> str:
    """When something ends, and how long that is from now."""
    left = at - now
    if left <= timedelta(0):
        return f"{clock_text(at)} (now)"
    return f"{clock_text(at)} (in {duration_text(left)})"


def duration_text(left: timedelta) -> str:
    """A time that is to come, for people, in minutes, hours or days."""
    minutes = max(round(left.total_seconds() / 60), 1)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"
