"""The two commands of the README on machines that lack something, and on one that has been set up."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("sh", "sed", "cat", "cksum", "dirname", "readlink", "printf", "env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts in a folder with blanks in its name, and nothing else of the project but its pyproject.toml."""
    root = tmp_path / "my own" / "zero bot"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with what every system has, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return folder


def start(checkout: Path, script: str, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script from elsewhere."""
    environ = {**os.environ, "PATH": str(path)}
    command = [str(checkout / "scripts" / script), *arguments]
    return subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, check=False)


def put(file: Path, text: str) -> None:
    """Write a program."""
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


@pytest.mark.parametrize("script", ["run", "test"])
def test_without_python_it_says_what_to_install(checkout: Path, path: Path, script: str) -> None:
    """No Python: a plain sentence, the commands that bring one, and nothing is left behind."""
    done = start(checkout, script, path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_named(checkout: Path, path: Path) -> None:
    """A Python that is too old is said to be so."""
    put(path / "python3", '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.18" && exit 0\nexit 1\n')
    done = start(checkout, "run", path)
    assert (done.returncode, "Python 3.9.18: too old" in done.stderr) == (1, True)


def test_the_newest_name_is_found_behind_a_broken_one(checkout: Path, path: Path) -> None:
    """A `python3` that does not start (a version manager's shim, say) hides no `python3.12` that does."""
    put(path / "python3", "#!/bin/sh\nexit 127\n")
    put(path / "python3.12", '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "set up by $0" >&2\nexit 7\n')
    done = start(checkout, "run", path)
    assert (done.returncode, "set up by" in done.stderr) == (1, True)


def ready(checkout: Path, path: Path, profile: str) -> None:
    """Make the environment look as a set-up leaves it."""
    put(path / "python3", "#!/bin/sh\nexit 9\n")
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    put(programs / "python", "#!/bin/sh\n")
    for name in ("zerobot", "pytest"):
        put(programs / name, f'#!/bin/sh\necho {name} "$(pwd)" "$@"\n')
    own = [checkout / "scripts" / name for name in ("run", "test", "setup.sh", "setup.py")]
    scripts = [checkout / "pyproject.toml", *own]
    together = b"".join(file.read_bytes() for file in scripts)
    stamp = subprocess.run(["cksum"], input=together, capture_output=True, check=True).stdout.decode().strip()
    (checkout / ".venv" / f".ready-{profile}").write_text(f"{stamp} {checkout}\n", encoding="utf-8")


def test_a_second_start_starts_at_once(checkout: Path, path: Path) -> None:
    """What is set up is started without any Python of the system, where the user is, with his arguments."""
    ready(checkout, path, "run")
    assert start(checkout, "run", path, "chat", "-m", "a b").stdout == "zerobot / chat -m a b\n"
    assert start(checkout, "run", path).stdout == "zerobot / chat\n"


def test_what_serves_the_tests_serves_a_run(checkout: Path, path: Path) -> None:
    """Who ran the tests first needs no second set-up; the other way round it is one."""
    ready(checkout, path, "test")
    assert start(checkout, "run", path, "--version").stdout == "zerobot / --version\n"
    done = start(checkout, "test", path, "tests/house")
    assert done.stdout == f"pytest {checkout} -n auto -m not slow tests/house\n"


def test_a_changed_project_is_set_up_again(checkout: Path, path: Path) -> None:
    """Another pyproject.toml, or the same one at another place, is no longer what was set up."""
    ready(checkout, path, "run")
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert start(checkout, "run", path).returncode == 1


def test_a_link_to_a_script_works(checkout: Path, path: Path, tmp_path: Path) -> None:
    """Somebody's `~/bin/zerobot` may be a link to scripts/run."""
    ready(checkout, path, "run")
    link = tmp_path / "zerobot"
    link.symlink_to(checkout / "scripts" / "run")
    done = subprocess.run(
        [link, "status"], cwd="/", env={"PATH": str(path)}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "zerobot / status\n"
