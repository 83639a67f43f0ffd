"""Makes the virtual environment of a checkout; called by `scripts/setup.sh` when its stamp does not fit.

Only the standard library is used, and what it prints goes to stderr: stdout belongs to the program that starts next.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Whether the environment's Python starts, is new enough, and every file of its pip is there.
SOUND = """
import sys
from importlib.metadata import distribution
files = distribution("pip").files or []
whole = bool(files) and all(f.locate().exists() for f in files if f.suffix != ".pyc")
sys.exit(not (whole and sys.version_info >= (3, 11)))
"""


class SetupError(Exception):
    """It cannot be done; the text says what to do."""


def say(text: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"zerobot set-up: {text}\n")
    sys.stderr.flush()


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Wait until no other set-up of this checkout runs. The system lets go of the lock whatever ends this process."""
    handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up of this checkout is at work; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_sound(environment: Path) -> bool:
    """Whether an environment is there and whole: no killed set-up left a half of it."""
    python = environment / "bin" / "python"
    if not python.exists() or (environment / ".installing").exists():
        return False
    try:
        return subprocess.run([python, "-I", "-c", SOUND], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_environment(environment: Path) -> None:
    """Make the environment anew.

    Raises:
        SetupError: This Python cannot make one.
    """
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} cannot make virtual environments: its module ensurepip is missing.\n"
            f"Install it, then run this again (Debian, Ubuntu: apt install python{version}-venv, or python3-venv)."
        )
    if environment.is_symlink() or environment.exists():
        say("the environment in .venv is broken or half made; making it anew")
        if environment.is_symlink() or environment.is_file():
            environment.unlink()
        else:
            shutil.rmtree(environment)
    say(f"making .venv with Python {sys.version.split()[0]}")
    try:
        venv.create(environment, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"{environment} could not be made: {error}") from error


def install(root: Path, environment: Path, extras: str) -> None:
    """Install the checkout, editable, with its extras.

    Raises:
        SetupError: pip could not; it has said why.
    """
    say(f"installing zerobot[{extras}] into .venv (once; some minutes on a slow line)")
    # A set-up that is killed from here on leaves this mark, and the next one starts from nothing.
    mark = environment / ".installing"
    mark.touch()
    pip = [str(environment / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    # Somebody's PIP_USER would have pip refuse to install into an environment; stdin belongs to what starts next.
    surroundings = {**os.environ, "PIP_USER": "0"}
    result = subprocess.run(
        [*pip, "-e", f"{root}[{extras}]"], stdin=subprocess.DEVNULL, stdout=sys.stderr, env=surroundings, check=False
    )
    mark.unlink()
    if result.returncode != 0:
        raise SetupError(
            "pip could not install what zerobot needs; its own words stand above.\n"
            "It needs the network (or a package index named by PIP_INDEX_URL) and some 100 MB of disk."
        )


def main(root: Path, profile: str, extras: str, stamp: str) -> int:
    """Bring `.venv` to what the profile needs, and note its stamp; the exit status."""
    environment = root / ".venv"
    ready = environment / f".ready-{profile}"
    try:
        with alone(root):
            if is_sound(environment):
                if ready.exists() and ready.read_text(encoding="utf-8") == f"{stamp}\n":
                    return 0
            else:
                make_environment(environment)
            install(root, environment, extras)
            ready.write_text(f"{stamp}\n", encoding="utf-8")
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"it failed: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped; run it again to go on")
        return 130
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:5]))
