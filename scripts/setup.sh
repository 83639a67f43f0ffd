# Read by scripts/run and scripts/test, not run by itself; wants $root. Finds a Python; setup.py does the rest.

# Prints the first Python on the PATH that is new enough. A name may be there and still not work (pyenv's shims).
find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        command -v "$name" >/dev/null 2>&1 || continue
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        command -v "$name"
        return 0
    done
    return 1
}

no_python() {
    {
        echo 'zerobot needs Python 3.11 or newer, and none was found on the PATH.'
        if version=$(python3 --version 2>/dev/null); then
            echo "What is there is $version: too old."
        fi
        echo 'Install one, then run this again:'
        echo '  Debian, Ubuntu:  apt install python3 python3-venv   (if that is too old: python3.11 python3.11-venv)'
        echo '  Fedora:          dnf install python3.13'
        echo '  macOS:           brew install python'
        echo '  anywhere:        https://www.python.org/downloads/'
    } >&2
    exit 1
}

# set_up PROFILE EXTRAS: makes $root/.venv fit for a profile. Nothing is done while pyproject.toml, these scripts and the
# place of the checkout are what they were, so that a second start costs one checksum.
set_up() {
    scripts="$root/scripts"
    stamp="$(cat "$root/pyproject.toml" "$scripts/run" "$scripts/test" "$scripts/setup.sh" "$scripts/setup.py" | cksum) $root"
    # What the tests need is more than what a run needs, so their stamp serves both.
    for ready in "$root/.venv/.ready-$1" "$root/.venv/.ready-test"; do
        if [ -x "$root/.venv/bin/python" ] && [ -r "$ready" ] && [ "$(cat "$ready")" = "$stamp" ]; then
            return 0
        fi
    done
    python=$(find_python) || no_python
    "$python" -I "$root/scripts/setup.py" "$root" "$1" "$2" "$stamp" || exit 1
}
