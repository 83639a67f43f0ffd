"""Confines itself by landlock(7) and seccomp(2), then becomes the command: a script that runs in a process of its own.

It imports nothing of zerobot. Whatever the system refuses ends it: a command never runs less confined than was asked.

Arguments: what is allowed as JSON ({"read": [paths], "change": [paths], "network": bool}), then the program and its
arguments.
"""

import ctypes
import json
import os
import platform
import stat
import struct
import sys
from collections.abc import Sequence

NEEDED_ABI = 6
"""Of landlock, Linux 6.12: from then on it also keeps signals and abstract sockets inside."""

# linux/landlock.h. The numbers of its calls are the same on all processors.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_FILES = (1 << 16) - 1
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_ONE_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

# linux/prctl.h, linux/seccomp.h, linux/filter.h
_NO_NEW_PRIVS, _READ_CAPABILITY, _DROP_CAPABILITY, _SET_SECCOMP, _FILTER = 38, 23, 24, 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16

# linux/audit.h, and the numbers of socket(2) and io_uring_setup(2); the first is what the kernel calls the processor.
_PROCESSORS = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425), "riscv64": (0xC00000F3, 198, 425)}
_X32 = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Confine this process and become the command; end with 126 when that cannot be done."""
    allowed, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        _drop_capabilities()
        _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
        _landlock(allowed["read"], allowed["change"], network=allowed["network"])
        _filter_sockets((_AF_INET, _AF_INET6, _AF_NETLINK) if allowed["network"] else ())
        os.execv(command[0], command)  # noqa: S606 - the command names its own shell
    except (OSError, KeyError) as error:
        os.write(2, f"the sandbox could not be set up: {error!r}\n".encode())
    os._exit(126)


def abi() -> int:
    """The version of landlock that the kernel speaks; 0: it has none, it is switched off, or it is another system's."""
    if platform.system() != "Linux":
        return 0
    found: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))
    return max(found, 0)


def knows_processor() -> bool:
    """Whether the filter of system calls can be written for this machine."""
    return platform.machine() in _PROCESSORS


def _drop_capabilities() -> None:
    """Keep root's command from having more rights than a file's owner: some of root's reach around landlock."""
    capability = 0
    while os.geteuid() == 0 and _libc.prctl(_READ_CAPABILITY, capability, 0, 0, 0) >= 0:
        _call("prctl", _DROP_CAPABILITY, capability, 0, 0, 0)
        capability += 1


def _landlock(read: Sequence[str], change: Sequence[str], *, network: bool) -> None:
    if abi() < NEEDED_ABI:
        raise OSError(_ENOSYS, "landlock is too old")
    handled = struct.pack("=QQQ", _ALL_FILES, 0 if network else _BIND_TCP | _CONNECT_TCP, _ABSTRACT_SOCKETS | _SIGNALS)
    rules = _call("syscall", _CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), ctypes.c_uint(0))
    for paths, rights in ((read, _READING), (change, _ALL_FILES)):
        for path in paths:
            _allow(rules, path, rights)
    _call("syscall", _RESTRICT_SELF, rules, ctypes.c_uint(0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= _OF_ONE_FILE
    rule = struct.pack("=Qi", rights, handle)
    _call("syscall", _ADD_RULE, rules, ctypes.c_uint(_PATH_BENEATH), rule, ctypes.c_uint(0))
    os.close(handle)


def _filter_sockets(families: Sequence[int]) -> None:
    """Refuse sockets of all other families.

    Landlock sees neither UDP nor sockets that have a place in the file system, by which other programs take orders.
    Refused as well: rings of system calls, which make sockets that no filter sees, and the calls of other processors.
    """
    processor, socket, ring = _PROCESSORS[platform.machine()]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, processor),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),
        (_IF_EQUAL, 0, 1, ring),
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),
        (_IF_EQUAL, 1, 0, socket),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_IF_EQUAL, len(families) - number, 0, family) for number, family in enumerate(families)),
        (_RETURN, 0, 0, _REFUSE | _EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    _call("prctl", _SET_SECCOMP, _FILTER, described, 0, 0)


def _call(name: str, *arguments: object) -> int:
    returned: int = getattr(_libc, name)(*arguments)
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


if __name__ == "__main__":
    main()
