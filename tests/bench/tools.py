"""What else searches a file for many expressions: ripgrep, grep, SEC, Python's re. Each gets them as it can read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

_GROUP = re.compile(r"\(\?P?<\w+>|\(\?:")
_FLAGS = re.compile(r"^\(\?[ims]+\)")
_PLAIN_ESCAPE = re.compile(r"\\([ #\"`'<>=!:;,@%&~/-])")
_CLASS = re.compile(r"\[(?:[^\]\\]*\\.)+[^\]\\]*\]")  # with an escape in it
_LINE_END = re.compile(r"(\[\^?\]?(?:\\.|[^\]\\])*\]|\\[^n])|\\n")  # outside of a class
# by ripgrep: a bracket in a class, an escaped backslash before what the others escape too, what is not ASCII without Unicode
_REFUSED = re.compile(r"""(?<!\\)\[[^\]]*(?<!\\)\[|\\\\['"/`]|\\`|[^\x00-\x7f]""")
_NEVER = r"\x01"  # in no line, as a line end is
_SEC_RULE = "type=Single\nptype=RegExp\npattern={}\ndesc=seen\naction=none\n\n"


def tools() -> Mapping[str, Callable[[Path, Sequence[str], Path], float]]:
    """Return the tools that this machine has: each takes a log, expressions and a folder, and returns its CPU seconds."""
    known = {"rg -j1": ("rg", _ripgrep), "grep -E": ("grep", _grep), "sec": ("sec", _sec), "python re": ("python3", _python)}
    return {name: measured for name, (program, measured) in known.items() if shutil.which(program)}


def _ripgrep(log: Path, regexes: Sequence[str], folder: Path) -> float:
    """The few expressions that it refuses are left out."""
    accepted = [regex for regex in regexes if _REFUSED.search(regex) is None]
    patterns = _written(folder / "rg.txt", [_ungrouped(_PLAIN_ESCAPE.sub(r"\1", regex)) for regex in accepted])
    return _cpu_of(["rg", "-j1", "--no-unicode", "--count", "--file", str(patterns), str(log)])


def _grep(log: Path, regexes: Sequence[str], folder: Path) -> float:
    """Extended expressions know no lazy repeats and no escapes in classes; what cannot be said becomes any character. Bytes are
    searched, as everyone does who greps much: with UTF-8 it takes minutes to read the expressions."""
    changed = [_CLASS.sub(".", _ungrouped(regex).replace("*?", "*").replace("+?", "+")) for regex in regexes]
    patterns = _written(folder / "grep.txt", [_PLAIN_ESCAPE.sub(r"\1", regex.replace(r"\d", "[0-9]")) for regex in changed])
    return _cpu_of(["env", "LC_ALL=C", "grep", "--extended-regexp", "--count", "--file", str(patterns), str(log)])


def _sec(log: Path, regexes: Sequence[str], folder: Path) -> float:
    rules = _written(folder / "sec.conf", [_SEC_RULE.format(regex) for regex in regexes])
    return _cpu_of(["sec", f"--conf={rules}", f"--input={log}", "--notail", "--quiet"])


def _python(log: Path, regexes: Sequence[str], folder: Path) -> float:
    compiled = [re.compile(regex.encode()) for regex in regexes]
    lines = log.read_bytes().splitlines()
    began = time.process_time()
    sum(any(each.search(line) for each in compiled) for line in lines)
    return time.process_time() - began


def head(log: Path, count: int, folder: Path) -> Path:
    """Return a file with the first `count` lines of `log`."""
    path = folder / f"head-{count}.log"
    with log.open("rb") as stream:
        path.write_bytes(b"".join(islice(stream, count)))
    return path


def _ungrouped(regex: str) -> str:
    """Return `regex` with groups that have no name, nothing but case among its flags, and no line end, which no line has."""
    plain = _GROUP.sub("(", _FLAGS.sub(lambda flags: "(?i)" if "i" in flags[0] else "", regex.replace("\n", r"\n")))
    return _LINE_END.sub(lambda found: found[1] or _NEVER, plain)


def _written(path: Path, texts: Sequence[str]) -> Path:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def _cpu_of(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command. Raises AssertionError when it fails: it would have measured nothing.

    What it prints is read: GNU grep ends at the first hit when it prints to the null device.
    """
    before = os.times()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    after = os.times()
    assert done.returncode in (0, 1), f"{command[0]}: {done.stderr[-300:]}"  # 1: nothing was found
    return after.children_user + after.children_system - before.children_user - before.children_system
