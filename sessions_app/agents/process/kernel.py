"""The few calls of Linux that Python 3.11 has no names for. Each raises OSError when the kernel refuses."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 2, 4, 4096, 8192, 16384, 1 << 18
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4

_SYS_MOUNT_SETATTR = 442
"""The same number on every architecture; glibc has a name for it since 2.36."""
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_ADD_RULE, _SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""These too are the same everywhere; glibc has no names for them."""
_LANDLOCK_VERSION, _LANDLOCK_BENEATH = 1, 1
_LANDLOCK_KNOWS_TRUNCATION, _LANDLOCK_KNOWS_SIGNALS = 3, 6
_LANDLOCK_WRITE_FILE, _LANDLOCK_TRUNCATE = 1 << 1, 1 << 14
_LANDLOCK_WRITE = _LANDLOCK_WRITE_FILE | _LANDLOCK_TRUNCATE | sum(1 << bit for bit in range(4, 14))
"""Also to make, to rename, to link and to remove; in between are only rights to read."""
_LANDLOCK_SCOPE_SIGNAL = 1 << 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


class _LandlockRuleset(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("files", "network", "scoped"))


class _LandlockPath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags))


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    _checked(_libc.mount(*(_bytes(text) for text in (source, target, kind)), ctypes.c_ulong(flags), _bytes(options)))


def change_mount(target: str, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    """Linux 5.12 and later."""
    attributes = _MountAttributes(attr_set=add, attr_clr=remove)
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, _bytes(target), flags, ctypes.byref(attributes), size)


def drop_capabilities() -> None:
    """All of them, also from what programs could get back."""
    for number in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), *_zeros(3))  # refused to whoever has none
    _libc.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), *_zeros(3))
    _checked(_libc.capset(ctypes.byref(_CapabilityHeader(_CAPABILITY_VERSION_3, 0)), (ctypes.c_uint32 * 6)()))


def gain_no_privileges() -> None:
    """From here on no program that is started has more rights than this process."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *_zeros(3)))


def write_only_in(places: Iterable[str]) -> None:
    """Landlock, of Linux 6.2 and later. No file is opened for writing, made or removed but in these folders and files.

    Nor can memory and environment of processes be read that are not behind the same fence; since 6.12 they get no
    signals either. Call it after `gain_no_privileges`.
    """
    version = landlock_version()
    if version < _LANDLOCK_KNOWS_TRUNCATION:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    scoped = _LANDLOCK_SCOPE_SIGNAL if version >= _LANDLOCK_KNOWS_SIGNALS else 0
    ruleset = _LandlockRuleset(files=_LANDLOCK_WRITE, scoped=scoped)
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    made = _syscall(_SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    try:
        for place in places:
            _let_write_in(place, made)
        _syscall(_SYS_LANDLOCK_RESTRICT_SELF, made, 0)
    finally:
        os.close(made)


def landlock_version() -> int:
    """0 where there is none."""
    try:
        return _syscall(_SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    except OSError:
        return 0


def _let_write_in(place: str, ruleset: int) -> None:
    allowed = _LANDLOCK_WRITE if os.path.isdir(place) else _LANDLOCK_WRITE_FILE | _LANDLOCK_TRUNCATE
    parent = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _LandlockPath(allowed=allowed, parent=parent)
        _syscall(_SYS_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)


def _syscall(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    _checked(min(result, 0))
    return result


def _zeros(count: int) -> list[ctypes.c_ulong]:
    return [ctypes.c_ulong(0)] * count


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
