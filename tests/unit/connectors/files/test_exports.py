"""What other programs print of logs becomes the logs; what is a log already stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.files.exports import (
    UNNAMED,
    is_grep_output,
    is_markdown,
    missing_of,
    of_grep,
    of_loki,
    of_markdown,
    of_search,
    split_of,
)

LINE = "[2023-02-03 02:05:02,285] ERROR something broke (x.Y)"
MORE = "\tat x.Y.run(Y.java:12)"


def test_the_lines_of_grep_go_back_to_their_files() -> None:
    first, second = "logs/b-1/server.log", "logs/b-2/server.log.3"
    text = f"{first}:{LINE}\n{first}-{MORE}\n--\n{second}:{LINE}\n{first}:{LINE}\n"
    assert split_of(text, "found.txt") is of_grep
    assert of_grep(text) == {
        "logs/b-1/server.log": f"{LINE}\n{MORE}\n{LINE}\n",
        "logs/b-2/server.log.3": f"{LINE}\n",
    }


def test_numbers_and_context_in_front_are_taken_off() -> None:
    text = f"a/server.log-11-{LINE}\na/server.log:12:{LINE}\na/server.log-13-{MORE}\nb/server.log:7:{LINE}\n"
    assert of_grep(text) == {"a/server.log": f"{LINE}\n{LINE}\n{MORE}\n", "b/server.log": f"{LINE}\n"}
    assert of_grep("a/s.log:12:05:33 ERROR bad\n") == {"a/s.log": "12:05:33 ERROR bad\n"}


def test_lines_of_a_path_that_is_not_recognised_are_kept() -> None:
    strange = "logs (old)/server=1.log"
    text = f"a/server.log:{LINE}\na/server.log:{LINE}\n--\n{strange}:{LINE}\n{strange}-{MORE}\n"
    assert of_grep(text) == {
        "a/server.log": f"{LINE}\n{LINE}\n",
        UNNAMED: f"{strange}:{LINE}\n{strange}-{MORE}\n",
    }
    between = f"{strange}:{LINE}\na/server.log-{MORE}\na/server.log:{LINE}\n"
    assert of_grep(between) == {"a/server.log": f"{MORE}\n{LINE}\n", UNNAMED: f"{strange}:{LINE}\n"}


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"hits": {"total": {"value": 3, "relation": "eq"}}}, "it holds 1 of 3 documents"),
        ({"hits": {"total": {"value": 10_000, "relation": "gte"}}}, "it holds 1 of at least 10,000 documents"),
        ({"hits": {"total": 3}}, "it holds 1 of 3 documents"),
        ({"error": {"type": "x"}, "status": 400}, "the search failed"),
        ({"timed_out": True}, "the search timed out"),
        ({"_shards": {"total": 5, "successful": 3, "failed": 2}}, "2 of 5 shards failed"),
        ({"hits": {"total": {"value": 1, "relation": "eq"}}, "timed_out": False, "_shards": {"failed": 0}}, ""),
        ({}, ""),
    ],
)
def test_an_answer_of_search_that_is_not_whole(part: dict[str, Any], sentence: str) -> None:
    answer = {"took": 1, **part, "hits": {**part.get("hits", {}), "hits": [{"_source": {"message": LINE}}]}}
    expected = [sentence] if sentence else []
    assert missing_of(json.dumps(answer)) == expected
    assert missing_of(json.dumps({"responses": [answer]})) == expected


def test_pages_of_one_search_are_counted_together() -> None:
    hit = {"_source": {"message": LINE}}
    pages = [{"took": 1, "hits": {"total": {"value": 3, "relation": "eq"}, "hits": hits}} for hits in ([hit, hit], [hit])]
    assert missing_of("\n".join(map(json.dumps, pages))) == []
    assert missing_of("\n".join(map(json.dumps, pages[:1]))) == ["it holds 2 of 3 documents"]


@pytest.mark.parametrize(
    "text",
    [
        f"{LINE}\n{MORE}\n{LINE}\n",
        "2023/02/03T02:05:02 ERROR a\n2023/02/03T02:05:03 ERROR b\n",
        "http://kafka/a: 2023-02-03\n" + f"{LINE}\n",
        "12:05:33 ERROR a\n12:05:34 ERROR b\n",
        f"kafka-1  | {LINE}\nkafka-2  | {LINE}\n",
        "server.log: is empty\nother.log: is empty\n",
        "",
    ],
)
def test_a_log_is_no_output_of_grep(text: str) -> None:
    assert not is_grep_output(text)
    assert split_of(text, "server.log") is None


def test_what_stands_around_a_fence_is_left_out_and_lines_keep_their_numbers() -> None:
    post = f"# Help\nIt says {LINE}\n\n```log\n{LINE}\n```\nand\n~~~~\n```\n{MORE}\n~~~~\nthanks\n"
    assert is_markdown(post, "post.md")
    assert of_markdown(post) == {"": f"\n\n\n\n{LINE}\n\n\n\n```\n{MORE}\n\n\n"}
    assert is_markdown(f"Hello,\nwe see:\n```\n{LINE}\n```\n", "stdin")
    assert not is_markdown(f"{LINE}\n```\n{LINE}\n", "server.log")
    assert not is_markdown("# no fence\n", "post.md")


def test_a_line_of_a_log_on_the_line_of_a_fence_is_read() -> None:
    """Who pastes a log often leaves out the line ends behind the opening fence and before the closing one."""
    assert of_markdown(f"We see:\n```{LINE}\n{MORE}```\nand stop.\n") == {"": f"\n{LINE}\n{MORE}\n\n"}
    assert of_markdown(f"```text\n{LINE}\n```\n") == {"": f"\n{LINE}\n\n"}


def test_a_post_that_begins_within_a_fence_is_read() -> None:
    assert of_markdown(f"tail -f x\n```\n\n```\n{LINE}\n{MORE}") == {"": f"tail -f x\n\n\n\n{LINE}\n{MORE}"}
    assert of_markdown("no fence") == {"": ""}


def test_an_answer_of_search_becomes_its_documents_by_file_and_time() -> None:
    def hit(time: str, offset: int, file: str) -> dict[str, object]:
        source = {"@timestamp": time, "message": LINE, "host": {"name": "h"}, "log": {"file": {"path": file}, "offset": offset}}
        return {"_index": "logs", "_id": f"{offset}", "_source": source}

    answer = {"took": 3, "hits": {"hits": [hit("2023-02-03T02:05:03Z", 9, "a.log"), hit("2023-02-03T02:05:02Z", 5, "a.log")]}}
    second = {"took": 3, "hits": {"hits": [hit("2023-02-03T02:05:02Z", 1, "a.log"), hit("2023-02-03T02:05:02Z", 1, "b.log")]}}
    text = json.dumps(answer, indent=2) + "\n" + json.dumps(second)
    assert split_of(text[:300], "answer.json") is of_search
    parts = of_search(text)
    assert [*parts] == ["h:a.log", "h:b.log"]
    assert [json.loads(line)["log"]["offset"] for line in parts["h:a.log"].splitlines()] == [1, 5, 9]
    fields = {"hits": {"hits": [{"fields": {"message": [LINE], "@timestamp": ["2023-02-03T02:05:02Z"]}}]}}
    assert json.loads(of_search(json.dumps({"responses": [fields]}))[""]) == {
        "message": LINE,
        "@timestamp": "2023-02-03T02:05:02Z",
    }
    with pytest.raises(ValueError):
        of_search('{"took": 3, "hits": ')


def test_an_answer_of_loki_becomes_its_streams_oldest_first() -> None:
    values = [["1675389903000000000", "second\n"], ["1675389902000000000", "first"]]
    result = [{"stream": {"app": "kafka", "pod": "kafka-0"}, "values": values}, {"stream": {}, "values": values[:1]}]
    text = json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}})
    assert split_of(text, "stdin") is of_loki
    assert of_loki(text) == {
        "kafka-0": "1675389902000000000\tfirst\n1675389903000000000\tsecond\n",
        "": "1675389903000000000\tsecond\n",
    }


def test_no_shipped_log_is_taken_for_an_export() -> None:
    samples = Path(__file__).parents[4] / "samples"
    logs = [path for path in samples.rglob("*") if path.is_file() and path.suffix not in (".md", ".yml")]
    assert len(logs) > 20
    assert [path for path in logs if split_of(path.read_text("utf-8", "replace")[: 1 << 16], path.name)] == []
