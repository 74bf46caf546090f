"""Which system calls are refused to a replay, by libseccomp and its binding `pyseccomp`, where both are installed.

Whatever asks for one gets EPERM, so that a library that only tries goes on.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

_PROGRAMS = ("execve", "execveat", "fork", "vfork")
_CLONE_THREAD = 0x00010000
_OTHER_PROCESSES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "pidfd_send_signal"),
    *("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "kcmp", "process_madvise"),
)
_MESSAGES = (
    *("mq_open", "mq_unlink", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl"),
    *("shmget", "shmat", "shmctl"),
)
"""Queues and memory that processes share by a number or a name."""
_METADATA = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr"),
    *("removexattrat", "file_setattr"),
)
_KERNEL = (
    *("mount", "umount", "umount2", "pivot_root", "chroot", "unshare", "setns", "mount_setattr", "move_mount"),
    *("open_tree", "fsopen", "fsmount", "fsconfig", "fspick", "open_by_handle_at", "name_to_handle_at"),
    *("bpf", "perf_event_open", "userfaultfd", "add_key", "keyctl", "request_key", "kexec_load", "kexec_file_load"),
    *("init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff", "acct", "quotactl"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
)
"""io_uring among them: it makes sockets and opens files without the calls that are watched."""
_FAMILIES = 64
"""More than there are."""
_TYPES = 16
"""As many as there can be; flags are above."""
_COMMANDS = {
    "fcntl": (8, 15),  # F_SETOWN, F_SETOWN_EX
    "ioctl": (0x8901, 0x8902, 0x5412, 0x540E),  # FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCSCTTY
}
"""The owner of a pipe or socket gets a signal when it is ready: it could be the worker, the signal SIGKILL. The last
two type into a terminal, and take one over."""
_COMMAND_BITS = 0xFFFFFFFF
"""The kernel looks at no more."""
_UNKNOWN = -1
_AF_NETLINK = 16

NO_SOCKETS: frozenset[int] = frozenset()
WITHOUT_A_WAY_OUT = frozenset({socket.AF_INET, socket.AF_INET6, _AF_NETLINK})
"""For a network namespace of its own: these reach nothing there. Sockets that are files would."""
OF_LIVE_TOOLS = WITHOUT_A_WAY_OUT | {socket.AF_UNIX}


def refuse_calls(families: frozenset[int], *, keep_metadata: bool = False) -> bool:
    """Sockets of these families can be made, and no others. `keep_metadata`: modes, owners, times and attributes of
    files cannot be changed. False where the library or the kernel's part is missing."""
    try:
        import pyseccomp

        _filter(pyseccomp, families, _METADATA if keep_metadata else ()).load()
    except (ImportError, RuntimeError, OSError):  # the second: there is no libseccomp
        return False
    return True


def _filter(binding: Any, families: frozenset[int], metadata: tuple[str, ...]) -> Any:
    made, refuse, own = binding.SyscallFilter(binding.ALLOW), binding.ERRNO(errno.EPERM), os.getpid()
    for name in (*_PROGRAMS, *_OTHER_PROCESSES, *_MESSAGES, *_KERNEL, *metadata):
        if binding.resolve_syscall(binding.Arch.NATIVE, name) != _UNKNOWN:  # older than the call
            made.add_rule(refuse, name)
    made.add_rule(refuse, "clone", binding.Arg(0, binding.MASKED_EQ, _CLONE_THREAD, 0))  # threads can be started
    made.add_rule(binding.ERRNO(errno.ENOSYS), "clone3")  # its flags cannot be looked at; libc takes clone then
    for name in ("kill", "tgkill"):
        made.add_rule(refuse, name, binding.Arg(0, binding.NE, own))
    made.add_rule(refuse, "prlimit64", binding.Arg(0, binding.NE, 0))  # limits of another process can end it
    for name, commands in _COMMANDS.items():
        for command in commands:
            made.add_rule(refuse, name, binding.Arg(1, binding.MASKED_EQ, _COMMAND_BITS, command))
    for kind in set(range(_TYPES)) - {socket.SOCK_STREAM}:  # one half of such a pair can send to any local socket
        made.add_rule(refuse, "socketpair", binding.Arg(1, binding.MASKED_EQ, _TYPES - 1, kind))
    for family in set(range(_FAMILIES)) - families:
        made.add_rule(refuse, "socket", binding.Arg(0, binding.EQ, family))
    made.add_rule(refuse, "socket", binding.Arg(0, binding.GE, _FAMILIES))
    return made
