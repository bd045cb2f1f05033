"""What a tree of processes listens on, read from /proc (proc(5): net/tcp; the state 0A is LISTEN)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_LISTENS = "0A"


class Listener(Struct, frozen=True):
    """A socket that some process of the tree listens on."""

    process: str
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int

    @property
    def is_loopback(self) -> bool:
        mapped = self.address.ipv4_mapped if isinstance(self.address, ipaddress.IPv6Address) else None
        return (mapped or self.address).is_loopback


def tree_of(session: int) -> list[int]:
    """The processes of a session, as a command has them that was started with one of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            pid, _, rest = re.match(r"(\d+) \((.*)\) (.*)", stat.read_text(), re.DOTALL).groups()
            if int(rest.split()[3]) == session:
                found.append(int(pid))
    return found


def listeners(pids: list[int]) -> list[Listener]:
    """What these processes listen on over TCP."""
    sockets = {inode: (address, port) for inode, address, port in _listening()}
    held = {inode: pid for pid in pids for inode in _inodes(pid) if inode in sockets}
    return [Listener(_read(pid, "comm").strip(), *sockets[inode]) for inode, pid in held.items()]


def command_lines(pids: list[int]) -> str:
    return "\n".join(_read(pid, "cmdline").replace("\0", " ") for pid in pids)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # it has ended
        return ""


def _listening() -> Iterator[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address, int]]:
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS:
                host, port = local.split(":")
                yield inode, _address(bytes.fromhex(host)), int(port, 16)


def _address(words: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Each 32-bit word is printed in the machine's byte order."""
    return ipaddress.ip_address(b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)))


def _inodes(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if found := re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink())):
                    yield found[1]
