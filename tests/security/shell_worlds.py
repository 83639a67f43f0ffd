"""Worlds in which lines run for real, inside bubblewrap, and tell what they have started."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.sandbox.boxes import box_or_skip
from zerobot.sandbox.box import Needs
from zerobot.sandbox.bubblewrap import find_program
from zerobot.security.policy import bounds_of
from zerobot.security.sandbox import SandboxKind

PATIENCE = 20.0
STUB = "#!/real/bash\nprintf '%s\\0' \"${0##*/}\" \"$@\" $'\\1' >> /trace/log\nexit 0\n"
MISSING = "() { printf '%s\\0' \"$@\" $'\\1' >> /trace/log; }"


class StubWorld:
    """A system in which every program is a stub that writes down its words; what has no stub is written down too."""

    def __init__(self, root: Path, programs: Sequence[str]) -> None:
        box_or_skip(SandboxKind.BUBBLEWRAP, bounds_of(workspace=root))
        self._trace = root / "trace"
        self._programs = root / "programs"
        real = root / "real"
        for folder in (self._trace, self._programs, real):
            folder.mkdir()
        shutil.copy("/bin/bash", real / "bash")
        for name in programs:
            stub = self._programs / name
            stub.write_text(STUB)
            stub.chmod(0o755)
        libraries = [name for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64") if Path(name).is_dir()]
        self._argv = [
            str(find_program()),
            *("--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
            *(word for name in libraries for word in ("--ro-bind", name, name)),
            *("--ro-bind", str(real), "/real", "--bind", str(self._trace), "/trace", "--chdir", "/tmp"),
            *(word for place in ("/usr/bin", "/bin", "/sbin") for word in ("--ro-bind", str(self._programs), place)),
            *("--", "/real/bash", "--norc", "--noprofile", "-c"),
        ]

    def started(self, line: str) -> list[tuple[str, ...]]:
        """The programs that a line has started, each with its words."""
        log = self._trace / "log"
        log.unlink(missing_ok=True)
        environ = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "BASH_FUNC_command_not_found_handle%%": MISSING}
        _run([*self._argv, line], Path("/"), environ)
        found: list[tuple[str, ...]] = []
        words: list[str] = []
        for word in log.read_text(errors="surrogateescape").split("\0")[:-1] if log.exists() else []:
            if word == "\1":
                found.append(tuple(words))
                words = []
            else:
                words.append(word)
        return found


class RealWorld:
    """The system's own programs over a small workspace, and a program `evil` that nobody allowed."""

    def __init__(self, root: Path) -> None:
        self._workspace = root / "workspace"
        self._evil = root / "evil"
        self._evil.mkdir()
        self._fill()
        bounds = bounds_of(workspace=self._workspace, allowed_paths=[str(self._evil)])
        self._box = box_or_skip(SandboxKind.BUBBLEWRAP, bounds)

    @property
    def workspace(self) -> Path:
        """Where lines run."""
        return self._workspace

    def effects(self, line: str) -> set[str]:
        """What a line did: `evil`, when that ran; `change`, when anything in the workspace is another afterwards."""
        before = self._content()
        argv = ("/bin/bash", "--norc", "--noprofile", "-c", line)
        environ = {"PATH": f"{self._evil}:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self._workspace)}
        with self._box.boxed(argv, Needs(folder=self._workspace)) as boxed:
            _run(boxed.argv, self._workspace, environ)
        found = set()
        ran = self._evil / "ran"
        if ran.exists():
            ran.unlink()
            found.add("evil")
        if self._content() != before:
            shutil.rmtree(self._workspace)
            self._fill()
            found.add("change")
        return found

    def _fill(self) -> None:
        script = f"#!/bin/bash\ntouch {self._evil}/ran\ncat\n"
        files = {
            "data": "a 1\nb 2\na 3\n" * 20,
            "list": "data\0",
            "Makefile": "all:\n\ttrue\n",
            "evil.mk": "all:\n\tevil\n",
            "evil.sed": "1e evil\n",
            "evil.awk": 'BEGIN { system("evil") }\n',
            "evil": script,
            "1/ls": f"#!/bin/bash\n: > {self._evil}/ran\n",
        }
        for name, text in files.items():
            (self._workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self._workspace / name).write_text(text)
        shutil.copy(self._workspace / "evil", self._evil / "evil")
        for copy in (self._workspace / "evil", self._workspace / "1/ls", self._evil / "evil"):
            copy.chmod(0o755)
        for words in (["init", "-q"], ["config", "alias.co", "!evil"], ["add", "data"]):
            subprocess.run(["git", *words], cwd=self._workspace, check=True)
        subprocess.run(["tar", "cf", "a.tar", "data"], cwd=self._workspace, check=True)

    def _content(self) -> Mapping[str, bytes | None]:
        # Git refreshes its index whenever it looks.
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for path in sorted(self._workspace.rglob("*"))
            if path.name != "index"
        }


def _run(argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    subprocess.run(
        argv,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
        start_new_session=True,
    )
