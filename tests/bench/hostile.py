"""What reading costs of input that nobody would send in good faith: nanoseconds a byte, of a tenth of the size and of all.

    python -m tests.bench hostile            50 MB of each kind (half an hour)
    python -m tests.bench.hostile 5 noise    another size, in MB, and some kinds only

The cost of a byte must be the same at both sizes: whatever grows with what was read before would show.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator
from itertools import count
from random import Random

from engine.dsl import builtin_rules, load_cached
from engine.model.records import RawLine
from engine.model.rules import Format
from engine.parse import assemble, decode, unwrap
from tests.bench.machine import say

MEGABYTES = 50
LONG = 256 * 1024  # as long as a line may be before it is cut
HEAD = b"[2022-10-05 17:05:39,869] ERROR Error processing append (kafka.server.ReplicaManager)"

# each is repeated until the line is LONG
SEEDS = {
    "letters": b"x",
    "blanks": b" ",
    "tabs": b"\t",
    "digits": b"1",
    "brackets": b"[",
    "braces": b"{",
    "quotes": b'"',
    "colours": b"\x1b[",
    "quotation marks": b"> ",
    "priorities": b"<134>",
    "stamps": b"2022-10-05 17:05:39,869 ",
    "containers": b"kafka_1 | ",
    "keys": b'{"message":"',
    "levels": b"ERROR [main] a.b.C - ",
    "names": b"a.b.C",
    "causes": b"Caused by: a.b.CException: ",
    "printed line ends": b"\\n\\tat ",
    "broken UTF-8": b"\xff\xc3",
}


def repeated(seed: bytes, size: int) -> bytes:
    """Return `seed` as often as it takes for `size` bytes."""
    return (seed * (size // len(seed) + 1))[:size]


def kinds(size: int) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the lines of each kind of hostile input, about `size` bytes in all."""
    yield "one line", iter((repeated(b"x", size),))
    yield "only line ends", (b"" for _ in range(size))
    yield "an endless trace", (HEAD if n == 0 else b"\tat a.b.C.d(C.java:%d)" % n for n in range(size // 22))
    yield "an endless trace without a head", (b"\tat a.b.C.d(C.java:%d)" % n for n in range(size // 22))
    yield "an endless document", (b'{"a":' for _ in range(size // 6))
    yield "nested JSON", (b'{"message":' * (LONG // 12) for _ in range(max(1, size // LONG)))
    yield "documents in documents", (nested(6) for _ in range(max(1, size // len(nested(6)))))
    yield "noise", noise(size)
    for name, seed in SEEDS.items():
        yield f"long lines of {name}", (repeated(seed, LONG) for _ in range(max(1, size // LONG)))


def nested(depth: int) -> bytes:
    """Return a document whose message is a document, and so on."""
    text = HEAD.decode()
    for _ in range(depth):
        text = '{"message":"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"}'
    return text.encode()


def noise(size: int) -> Iterator[bytes]:
    """Yield random bytes, cut at line ends."""
    random = Random(7)
    return (random.randbytes(200).replace(b"\n", b" ") for _ in range(size // 201))


def cost(lines: Iterator[bytes], formats: tuple[Format, ...]) -> float:
    """Return the nanoseconds of CPU that each byte of `lines` takes from raw line to event."""
    size = 0

    def raw() -> Iterator[RawLine]:
        nonlocal size
        for number, line in zip(count(1), lines, strict=False):
            yield RawLine("f.log", size, line, number)
            size += len(line) + 1

    began = time.process_time_ns()
    for _ in decode(assemble(unwrap(raw(), formats), formats), formats):
        pass
    return (time.process_time_ns() - began) / max(size, 1)


def measure(megabytes: int = MEGABYTES, only: Collection[str] = ()) -> None:
    """Print what each kind costs, or those of `only`."""
    formats = load_cached([builtin_rules()]).formats
    small = dict(kinds(megabytes * 100_000))
    for name, lines in kinds(megabytes * 1_000_000):
        if not only or name in only:
            costs = cost(small[name], formats), cost(lines, formats)
            say(name, f"{costs[0]:8.1f} ns a byte of {megabytes / 10:g} MB, {costs[1]:8.1f} of {megabytes} MB")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES, sys.argv[2:])
