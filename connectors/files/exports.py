"""Turns what other programs print of logs into the logs: the output of `grep -rH`, Markdown with fences, answers of
Elasticsearch's `_search` and of Loki's API. Pure.

Each function takes the whole content and returns the text of each log in it, by a name that is empty when there is only one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.shipping import FILE, HOST, named, value_at

Split = Callable[[str], Mapping[str, str]]

MOST_CHARACTERS = 256 << 20  # of a content that is taken as a whole
UNNAMED = "lines of other files"  # the name of what grep printed of files whose names are not recognised
_FEW = 40  # lines by which the output of grep is recognised
_OF_PATHS = r"[^\s:\[\]{}\"'|=,;()<>]*"  # no date, level or class in front of a message is one
_PATH = rf"(?:[A-Za-z]:[\\/])?(?=[^\s:]*[A-Za-z]{{2}}){_OF_PATHS}(?:[/\\]{_OF_PATHS}|\.(?:log|out|txt)[\w.-]*)"
_FOUND = re.compile(rf"(?P<path>{_PATH}):(?:\d+:(?!\d\d[:.]))?(?P<line>.*)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\b(?:INFO|WARN|ERROR|FATAL)\b")
_FENCE = re.compile(r"\s{0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
_MARKDOWN = (".md", ".markdown")


def split_of(head: str, name: str) -> Split | None:
    """Return the function for a content that begins with `head`, a file called `name`; None when it is a log as it is."""
    start = head.lstrip()
    if start.startswith("{") and '"hits"' in head and ('"took"' in head or '"_source"' in head):
        return of_search
    if start.startswith("{") and '"resultType"' in head and '"streams"' in head:
        return of_loki
    if is_markdown(head, name):
        return of_markdown
    return of_grep if is_grep_output(head) else None


def is_markdown(head: str, name: str) -> bool:
    """Return whether a content is Markdown with fences: it has one, and is called so or begins with prose."""
    lines = head.splitlines()
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    if not fences:
        return False
    return name.lower().endswith(_MARKDOWN) or not any(_STAMP.search(line) for line in lines[: fences[0]])


def of_markdown(content: str) -> Mapping[str, str]:
    """Return the lines within fences; every other line is empty, so that the numbers of lines stay.

    A line of a log that stands on the line of a fence, behind the opening one or before the closing one, is within. Where
    nothing is within, the beginning of the text was not copied, and its first fence closes one.
    """
    lines = content.split("\n")
    kept = _within_fences(lines)
    if not any(line.strip() for line in kept):
        first = next((fence["mark"] for line in lines if (fence := _FENCE.match(line))), "")
        kept = _within_fences(lines, first)
    return {"": "\n".join(kept)}


def _within_fences(lines: Sequence[str], mark: str = "") -> list[str]:
    """Return the lines that are within fences, the others empty; `mark` is of the fence that is open at the beginning."""
    kept: list[str] = []
    for line in lines:
        fence = _FENCE.match(line)
        if mark and fence is not None and fence["mark"].startswith(mark):
            mark = ""
            kept.append("")
        elif mark:
            closed = line.rstrip().endswith(mark)
            kept.append(line.rstrip().removesuffix(mark) if closed else line)
            mark = "" if closed else mark
        elif fence is not None:
            mark = fence["mark"]
            kept.append(fence["info"] if _STAMP.search(fence["info"]) else "")
        else:
            kept.append("")
    return kept


def is_grep_output(head: str) -> bool:
    """Return whether all of the first lines have the path of a file in front, as `grep -rH` prints it, and most are of logs."""
    lines = [line for line in head.split("\n")[:_FEW][: -1 if head.count("\n") < _FEW else None] if line and line != "--"]
    matches = [match for line in lines if (match := _FOUND.match(line)) is not None]
    if len(matches) < 2:
        return False
    paths = {match["path"] for match in matches}
    others = [line for line in lines if _FOUND.match(line) is None and not line.startswith(tuple(f"{path}-" for path in paths))]
    return not others and 2 * sum(_STAMP.search(match["line"]) is not None for match in matches) > len(matches)


def of_grep(content: str) -> Mapping[str, str]:
    """Return the lines of each file without its path and their numbers; lines of context (`-A`, `-B`, `-C`) are lines too.

    Lines whose path is not recognised are the log UNNAMED, as they are.
    """
    texts: dict[str, list[str]] = {}
    waiting: list[str] = []  # context in front of the first line that names its file for sure
    unnamed: list[str] = []
    path = ""
    for line in content.split("\n"):
        if line in ("", "--"):
            continue
        if (match := _FOUND.match(line)) is not None:
            path = match["path"]
            unnamed += [early for early in waiting if not early.startswith(f"{path}-")]
            texts.setdefault(path, []).extend(_without_path(early, path) for early in waiting if early.startswith(f"{path}-"))
            waiting = []
            texts[path].append(match["line"])
        elif path and line.startswith(f"{path}-"):
            texts[path].append(_without_path(line, path))
        else:
            waiting.append(line)
    unnamed += waiting
    logs = {**texts, UNNAMED: unnamed} if unnamed else texts
    return {name: "\n".join([*lines, ""]) for name, lines in logs.items()}


def _without_path(line: str, path: str) -> str:
    return re.sub(r"\A\d+-(?=.)", "", line[len(path) + 1 :])


def of_search(content: str) -> Mapping[str, str]:
    """Return the documents of each file in the answers of `_search`, a line each, by their time and place in the file.

    Raises ValueError when `content` is not such an answer.
    """
    documents: dict[str, list[tuple[str, int, str]]] = {}
    for hit in (hit for answer in _values(content) for part in _parts(answer) for hit in _hits(part)):
        if document := _document(hit):
            host, file = named(document, HOST), named(document, FILE)
            place = value_at(document, "log.offset")
            order = (str(value_at(document, "@timestamp") or ""), place if isinstance(place, int) else 0)
            name = f"{host}:{file}" if host and file else host or file
            line = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            documents.setdefault(name, []).append((*order, line))
    return {
        name: "".join(f"{line}\n" for *_, line in sorted(rows, key=lambda row: row[:2])) for name, rows in documents.items()
    }


def missing_of(content: str) -> Sequence[str]:
    """Return why the answers of `_search` are not all of what was searched for, a clause for each reason; pages of one search
    (they have the same total) are taken together.

    Raises ValueError when `content` is not such an answer.
    """
    reasons: dict[str, None] = {}
    held: dict[tuple[int, str], int] = {}  # documents, by total and relation
    for part in (part for answer in _values(content) for part in _parts(answer)):
        if "error" in part:
            reasons["the search failed"] = None
        if part.get("timed_out") is True:
            reasons["the search timed out"] = None
        shards = part.get("_shards")
        if isinstance(shards, dict) and shards.get("failed"):
            reasons[f"{shards['failed']} of {shards.get('total', 'the')} shards failed"] = None
        if (total := _total(part)) is not None:
            held[total] = held.get(total, 0) + sum(bool(_document(hit)) for hit in _hits(part))
    counts = [
        f"it holds {number:,} of {'at least ' if relation == 'gte' else ''}{total:,} documents"
        for (total, relation), number in held.items()
        if number < total or (relation == "gte" and number == total)
    ]
    return [*reasons, *counts]


def _total(part: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return how many documents a search found, and `eq` or, for a lower bound, `gte`; None when the answer does not say."""
    hits = part.get("hits")
    total = hits.get("total") if isinstance(hits, dict) else None
    if isinstance(total, dict):
        value, relation = total.get("value"), str(total.get("relation", "eq"))
    else:
        value, relation = total, "eq"  # before Elasticsearch 7
    return (value, relation) if isinstance(value, int) else None


def _parts(answer: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the answer of each search in an answer of `_search` or `_msearch`."""
    parts = [answer, *(answer.get("responses") or [])] if isinstance(answer, dict) else []
    yield from (part for part in parts if isinstance(part, dict))


def _hits(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    hits = part.get("hits")
    rows = hits.get("hits") if isinstance(hits, dict) else None
    yield from (row for row in rows or [] if isinstance(row, dict))


def _document(hit: Mapping[str, Any]) -> Mapping[str, Any]:
    return hit.get("_source") or {key: _single(value) for key, value in (hit.get("fields") or {}).items()}


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def of_loki(content: str) -> Mapping[str, str]:
    """Return the lines of each stream in the answers of Loki's API, each behind its stamp, by their time.

    Raises ValueError when `content` is not such an answer.
    """
    texts: dict[str, list[tuple[int, str]]] = {}
    for answer in _values(content):
        data = answer.get("data") if isinstance(answer, dict) else None
        for stream in (data.get("result") or []) if isinstance(data, dict) else []:
            labels: Mapping[str, str] = stream.get("stream") or {}
            name = next((labels[key] for key in ("filename", "pod", "container", "unit", "app", "job") if key in labels), "")
            rows = texts.setdefault(name, [])
            rows += [(int(value[0]), f"{value[0]}\t{str(value[1]).rstrip()}\n") for value in stream.get("values") or []]
    return {name: "".join(line for _, line in sorted(rows, key=lambda row: row[0])) for name, rows in texts.items()}


def _values(content: str) -> Iterator[Any]:
    """Yield the JSON values that `content` consists of. Raises ValueError."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(content):
        blank = re.compile(r"\s*").match(content, at)
        at = blank.end() if blank is not None else at
        if at < len(content):
            value, at = decoder.raw_decode(content, at)
            yield value
