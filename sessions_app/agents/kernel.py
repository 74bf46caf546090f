"""The few calls of Linux that Python 3.11 has no names for. Each raises OSError when the kernel refuses."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 2, 4, 4096, 8192, 16384, 1 << 18
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4

_SYS_MOUNT_SETATTR = 442
"""The same number on every architecture; glibc has a name for it since 2.36."""
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags))


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    _checked(_libc.mount(*(_bytes(text) for text in (source, target, kind)), ctypes.c_ulong(flags), _bytes(options)))


def change_mount(target: str, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    """Linux 5.12 and later."""
    attributes = _MountAttributes(attr_set=add, attr_clr=remove)
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call = ctypes.c_long(_SYS_MOUNT_SETATTR)
    _checked(_libc.syscall(call, _AT_FDCWD, _bytes(target), flags, ctypes.byref(attributes), size))


def drop_capabilities() -> None:
    """All of them, also from what programs could get back."""
    for number in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), *_zeros(3))  # refused to whoever has none
    _libc.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), *_zeros(3))
    _checked(_libc.capset(ctypes.byref(_CapabilityHeader(_CAPABILITY_VERSION_3, 0)), (ctypes.c_uint32 * 6)()))


def gain_no_privileges() -> None:
    """From here on no program that is started has more rights than this process."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *_zeros(3)))


def _zeros(count: int) -> list[ctypes.c_ulong]:
    return [ctypes.c_ulong(0)] * count


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
