"""What the kernel keeps from a replay, whatever language its code is written in.

A user namespace of its own, in which it has no capability; a mount namespace in which everything can be read and only
an empty folder can be written, with devices that hold nothing; a network namespace without interfaces; Landlock, which
needs no namespace; and system calls that are refused. What a machine does not allow is left out. Nothing here is
believed: `fence_probes` tries what holds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessions_app.agents.process import kernel, seccomp

_APART = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
_DEVICES = ("null", "zero", "full", "random", "urandom")
_DESCRIPTORS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_SCRATCH_MB = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """What was set up."""

    own_network: bool = False
    read_only_root: bool = False
    landlock: bool = False
    refused_calls: bool = False

    @property
    def keeps_the_disk(self) -> bool:
        """Landlock says nothing of modes, owners, times and attributes of files; those calls are refused beside it."""
        return self.read_only_root or (self.landlock and self.refused_calls)


def seal(folder: Path | None, hidden: Iterable[str], *, has_network: bool) -> Seal:
    """Call it while there is one thread; there is no way back. `folder` can be written afterwards and is empty;
    `hidden` are folders and files that cannot be read, but for those in which the code itself lies."""
    if sys.platform != "linux":
        return Seal()
    own_mounts, own_network = _leave(has_network=has_network)
    is_read_only = own_mounts and _shut_the_disk(folder, [place for place in hidden if not holds_code(place)])
    with suppress(OSError):
        kernel.drop_capabilities()
    landlock = _lock_the_land(folder)
    families = _families(own_network, has_network=has_network)
    refused = seccomp.refuse_calls(families, keep_metadata=landlock and not is_read_only)
    return Seal(
        own_network=own_network,
        read_only_root=is_read_only,
        landlock=landlock,
        refused_calls=refused,
    )


def _lock_the_land(folder: Path | None) -> bool:
    """Also where the root can be read only: named pipes could be written there, and others' memory is a file."""
    try:
        kernel.gain_no_privileges()
        kernel.write_only_in([f"/dev/{name}" for name in _DEVICES] + ([str(folder)] if folder else []))
    except OSError:
        return False
    return True


def _families(own_network: bool, *, has_network: bool) -> frozenset[int]:
    if has_network:
        return seccomp.OF_LIVE_TOOLS
    return seccomp.WITHOUT_A_WAY_OUT if own_network else seccomp.NO_SOCKETS


def _leave(*, has_network: bool) -> tuple[bool, bool]:
    """Whether it has mounts and a network of its own now. The user namespace comes first, also for root: what root may
    do, it may do in there alone. Some kernels give nobody one."""
    network = 0 if has_network else kernel.CLONE_NEWNET
    for flags in (kernel.CLONE_NEWUSER | _APART | network, _APART | network, kernel.CLONE_NEWUSER | network, network):
        user, group = os.geteuid(), os.getegid()
        try:
            kernel.unshare(flags)
        except OSError:
            continue
        if flags & kernel.CLONE_NEWUSER:
            _stay(user, group)
        return bool(flags & kernel.CLONE_NEWNS), bool(flags & network)
    return False, False


def _stay(user: int, group: int) -> None:
    """The same user and group as outside. Without this every file would be a stranger's."""
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _shut_the_disk(folder: Path | None, hidden: list[str]) -> bool:
    try:
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        for place in hidden:
            _cover(place)
        _put_devices()
        if folder is not None:
            os.makedirs(folder, exist_ok=True)  # it may have been in one of those that are covered now
        read_only = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
        kernel.change_mount("/", add=read_only, recursive=True)
        for name in _DEVICES:
            kernel.change_mount(f"/dev/{name}", remove=kernel.MOUNT_ATTR_NODEV)
        if folder is not None:
            flags = kernel.MS_NOSUID | kernel.MS_NODEV
            kernel.mount("scratch", str(folder), "tmpfs", flags, f"size={_SCRATCH_MB}m,nr_inodes=10k,mode=0700")
    except OSError:
        return False
    return True


def _cover(place: str) -> None:
    if os.path.isdir(place):
        kernel.mount("hidden", place, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=0755")
    elif os.path.exists(place):
        kernel.mount("/dev/null", place, None, kernel.MS_BIND)


def _put_devices() -> None:
    """A read-only mount does not keep anybody from writing to a disk by its device."""
    staging = tempfile.gettempdir()
    os.makedirs(staging, exist_ok=True)
    kernel.mount("devices", staging, "tmpfs", kernel.MS_NOSUID, "size=1m,mode=0755")
    for name in _DEVICES:
        Path(staging, name).touch()
        kernel.mount(f"/dev/{name}", f"{staging}/{name}", None, kernel.MS_BIND)
    for name, target in _DESCRIPTORS.items():
        os.symlink(target, f"{staging}/{name}")
    kernel.mount(staging, "/dev", None, kernel.MS_MOVE)


def holds_code(place: str) -> bool:
    """Whether hiding it would hide what has to run."""
    needed = [*sys.path, sys.prefix, sys.base_prefix, sys.executable, os.getcwd()]
    root = Path(os.path.realpath(place))
    return any(Path(os.path.realpath(path)).is_relative_to(root) for path in needed if path)
