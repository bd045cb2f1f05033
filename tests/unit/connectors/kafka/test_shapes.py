"""What is cut out of many documents at once is what each of them says."""

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.documents import Documents
from connectors.kafka.shapes import MOST, SELDOM, VAIN, Lines, Shape, Shapes, shape_around

LINE = "[2022-10-05 17:05:00,000] INFO fine (kafka)"


def filebeat(line: str, offset: int = 17, at: str = "2022-10-05T17:05:00.123Z", host: str = "kafka-1") -> bytes:
    """Return a document as Filebeat writes it."""
    document = {
        "@timestamp": at,
        "@metadata": {"beat": "filebeat", "version": "8.15.0"},
        "log": {"offset": offset, "file": {"path": "/var/log/kafka/server.log"}},
        "message": line,
        "input": {"type": "log"},
        "host": {"name": host},
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def lines_of(lines: Lines) -> list[bytes]:
    """Return what each of some documents has."""
    data, sizes = lines
    read = BytesIO(data)
    return list(read) if sizes is None else [read.read(size) for size in sizes]


def alone(values: list[bytes]) -> list[bytes]:
    """Return the lines of documents as whoever reads each by itself finds them."""
    held = [Documents().told([value])[0][0] for value in values]
    return [line if line.endswith(b"\n") else line + b"\n" for line in held]


def learnt(*values: bytes) -> Documents:
    """Return what knows the shapes of these, which were read together."""
    documents = Documents()
    documents.told(values)
    return documents


def cut(documents: Documents, values: list[bytes]) -> list[bytes] | None:
    """Return what the known shapes alone make of documents."""
    found = documents.cut(values)
    return None if found is None else lines_of(found[0])


KNOWN = learnt(filebeat(LINE, 17, "2022-10-05T17:05:59.999Z"), filebeat("x", 940, "2021-11-16T08:16:00.000Z"))


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "",
        "\tat a.B(C.java:1)",
        'it said "no"',
        "C:\\temp\\new",
        'a\\"b',
        "\\",
        "two\nlines",
        "ends\n",
        "ünïcode",
        "a/b",
        "\r",
    ],
)
def test_lines_are_cut_out_as_they_were(line: str) -> None:
    values = [filebeat(LINE, 18), filebeat(line, 1019), filebeat(LINE, 20)]
    assert cut(KNOWN, values) == alone(values)


@pytest.mark.parametrize(
    "value",
    [
        filebeat(LINE, host="kafka-2"),  # another host: its digits are of its name
        filebeat(LINE).replace(b'"offset":17', b'"offset":017'),  # no JSON
        filebeat(LINE).replace(b'"offset":17', b'"offset":-17'),
        filebeat(LINE).replace(LINE.encode(), b"a\tb"),  # no JSON: it is raw
        filebeat(LINE).replace(LINE.encode(), b'a"b'),
        filebeat(LINE).replace(LINE.encode(), b"a\\"),
        filebeat(LINE).replace(LINE.encode(), b"a\\qb"),
        filebeat(LINE).replace(LINE.encode(), b"\xff"),
        filebeat("\x1b[31m"),  # it may be read, by itself
        filebeat(LINE).replace(b'"input"', b'"level":"INFO","input"'),
        filebeat(LINE) + b"\n" + filebeat(LINE),  # two in a record are no document
        filebeat(LINE) + b"\n",
        b"a line",
        b"",
    ],
)
def test_what_is_of_another_shape_is_not_cut(value: bytes) -> None:
    assert cut(KNOWN, [filebeat(LINE), filebeat(LINE)]) is not None
    for values in ([filebeat(LINE), value], [value, filebeat(LINE)], [filebeat(LINE), value, filebeat(LINE)]):
        assert cut(KNOWN, values) is None


def test_digits_that_were_always_the_same_must_be() -> None:
    documents = learnt(filebeat(LINE, 17), filebeat(LINE, 18))
    later = [filebeat(LINE, 19, "2022-10-05T17:06:00.123Z"), filebeat(LINE, 20, "2022-10-05T17:07:00.123Z")]
    assert cut(documents, later) is None
    documents.told(later[1:])
    assert cut(documents, [filebeat(LINE, 1, "2022-10-05T17:59:00.123Z"), filebeat(LINE, 2, "2022-10-05T17:05:00.123Z")])


def test_one_shape_is_learnt_of_a_file_and_few_of_many() -> None:
    documents = Documents()
    for number in range(MOST + 2):
        documents.told([filebeat(LINE, 1, host=f"h{number}"), filebeat(LINE, 20, host=f"h{number}")])
        documents.told([filebeat(LINE, 300, host=f"h{number}"), filebeat(LINE, 4000, host=f"h{number}")])
    assert cut(documents, [filebeat(LINE, 5, host=f"h{MOST + 1}")]) is not None
    assert cut(documents, [filebeat(LINE, 5, host="h1")]) is None


def test_the_shape_says_whose_the_lines_are() -> None:
    found = KNOWN.cut([filebeat(LINE)])
    assert found is not None
    assert (found[1].host, found[1].file) == ("kafka-1", "/var/log/kafka/server.log")


def test_what_is_asked_for_is_the_same_in_all_that_is_cut() -> None:
    documents = Documents(["app", "n"])
    values = [json.dumps({"n": n, "app": app, "host": "h", "message": "m"}).encode() for n in (1, 20) for app in ("a1", "a2")]
    for some in (values[::2], values[1::2]):
        documents.told(some)
        found = documents.cut(some)
        assert found is not None
        assert found[1].asked == documents.told(some)[1][0].asked
    assert documents.cut(values) is None


def test_what_is_never_of_use_is_seldom_learnt_from() -> None:
    shapes: Shapes[str] = Shapes()
    orders = [f"{number:09b}".translate(str.maketrans("01", "ab")) for number in range(VAIN + 10 * SELDOM)]
    values = [json.dumps({order: 1, "message": LINE}).encode() for order in orders]
    for value in values:
        assert shapes.cut([value]) is None
        shapes.learn([value], "h")
    known = [number for number, value in enumerate(values) if shapes.cut([value]) is not None]
    assert known[:VAIN] == list(range(VAIN))
    assert len(known) < VAIN + 12


@pytest.mark.parametrize(
    "document",
    [
        {"message": "x", "host": "x"},  # which of the two is it?
        {"host": "h\\", "message": LINE},
        {"host": "h", "message": None, "log": 1},
        {"host": "h", "message": LINE, "more": "y" * 5000},
    ],
)
def test_no_shape_is_learnt_of_what_is_not_sure(document: dict[str, object]) -> None:
    assert shape_around(json.dumps(document).encode(), "h") is None


def test_a_document_over_several_lines_has_no_shape() -> None:
    assert shape_around(json.dumps({"host": "h", "message": LINE}, indent=1).encode(), "h") is None


ANY = st.text(st.sampled_from('ab01 "\\/\n\t{}:,') | st.characters(), max_size=12)
DIGITS = st.text("0123456789", min_size=1, max_size=3)
# documents of few shapes, some of them broken
DOCUMENTS = st.tuples(
    st.sampled_from(["h", "h1", "h2"]),
    st.sampled_from(['"%s"', '"a%sb"', "%s", "1.%s", "-%s", "[%s]", '"\\u00%s"', '{"message": %s}']),
    DIGITS,
    ANY.map(json.dumps) | ANY.map(lambda text: f'"{text}"') | st.just("null"),
    st.booleans(),
).map(
    lambda parts: (
        f'{{"n": {parts[1] % parts[2]}, "message": {parts[3]}, "host": "{parts[0]}"}}'
        if parts[4]
        else f'{{"host": "{parts[0]}", "message": {parts[3]}, "n": {parts[1] % parts[2]}}}'
    ).encode("utf-8", "surrogatepass")
)


@given(st.lists(st.lists(DOCUMENTS, min_size=1, max_size=4), min_size=1, max_size=6))
def test_whatever_was_learnt_each_document_says_what_it_says_alone(lists: list[list[bytes]]) -> None:
    documents = Documents(["n"])
    for values in lists:
        found = documents.cut(values)
        _, whose = documents.told(values)
        if found is not None:
            assert lines_of(found[0]) == alone(values)
            assert {found[1]} == set(whose)


def test_shapes_that_differ_in_more_than_digits_stay_apart() -> None:
    one, other = (Shape("h", ('"', digits, text)) for digits, text in ((b"1", b"\n"), (b"2", b" \n")))  # type: ignore[arg-type]
    assert one.widened(other) is None
    assert one.widened(Shape("g", one.between)) is None
