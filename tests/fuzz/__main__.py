"""Fuzz the loader of rules, or the parser of expressions: `python -m tests.fuzz files|expressions [SECONDS]`.

An input that ends in a traceback, takes longer than TIMEOUT_S, or starts a program, opens a connection or writes a file, is
kept in `.fuzz/` and named; the exit code is then not 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["engine", "yaml"]):
    from tests.unit.dsl.test_fuzz import PIECES, WORDS, check_expression, check_file, texts

FOLDER = Path(".fuzz")
TIMEOUT_S = 20
LONGEST_BYTES = 8192
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "os.remove", "shutil.")


def files(data: bytes) -> None:
    """Load a file, and advise on it."""
    check_file(data)


def expressions(data: bytes) -> None:
    """Parse an expression, and evaluate it."""
    check_expression(data.decode("utf-8", "replace"))


# what is fuzzed -> how, and what to start from
TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], tuple[str, ...]]]] = {
    "files": (files, texts),
    "expressions": (expressions, lambda: (*WORDS, "1 of x_* and not (a or b)", "ceil_pow2(size * 1.5) > 10m", "count >= 3")),
}


def forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse, as an audit hook, what no rule may ever cause. Raises RuntimeError."""
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or event.startswith(FORBIDDEN):
        raise RuntimeError(f"{event}{arguments!r}")


def main(name: str, seconds: str = "300") -> None:
    """Fuzz one target for so many seconds; does not return."""
    check, start = TARGETS[name]
    corpus = FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(start()):
        (corpus / f"start-{number}").write_bytes(text.encode("utf-8", "replace")[:LONGEST_BYTES])
    words = FOLDER / f"{name}.dict"
    words.write_text("".join(f'"{_escaped(piece)}"\n' for piece in PIECES), encoding="ascii")
    check(b"")  # what is made once, at the first use, is made before the hook is there
    sys.dont_write_bytecode = True  # nor is it a rule that writes down a module that is imported later
    sys.addaudithook(forbid)
    options = [f"-max_total_time={seconds}", f"-timeout={TIMEOUT_S}", f"-max_len={LONGEST_BYTES}", f"-dict={words}"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}-failed-", "-print_final_stats=1", str(corpus)], check)
    atheris.Fuzz()


def _escaped(piece: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in piece.encode("utf-8", "replace"))


if __name__ == "__main__":
    main(*sys.argv[1:])
