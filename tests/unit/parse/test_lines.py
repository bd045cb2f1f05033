"""Bytes to text: nothing fails, nothing dangerous stays, long lines are cut and say so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.parse.lines import LINE_BYTES, clean, decode_line, plain


def test_plain_text_is_kept() -> None:
    assert decode_line("ISR(1) → \tisr".encode()) == ("ISR(1) → \tisr", False)


def test_broken_utf8_is_replaced() -> None:
    assert decode_line(b"topic \xff\xfe x") == ("topic \ufffd\ufffd x", False)


def test_colours_are_taken_off() -> None:
    assert clean("\x1b[36mkafka_1 |\x1b[0m \x1b[1;31mERROR\x1b[0m") == "kafka_1 | ERROR"


def test_marks_of_bold_are_taken_off_and_other_asterisks_stay() -> None:
    assert plain("x **Connection to node -1** could not, **[a-0]**") == "x Connection to node -1 could not, [a-0]"
    for text in ("a/**/b and **/c", "password=********", "*** mockbroker/1", "2 ** 3 ** 4", "**not closed", "a**b**c"):
        assert plain(text) == text


def test_the_colours_of_a_web_page_are_taken_off_and_generic_types_stay() -> None:
    assert plain('socket <span class="code-keyword">for</span> a:1') == "socket for a:1"
    for text in ("at App$1.<init>(App.java:3)", "Map<String, Span> spans", "List<span.Id>", "span 3 < 4"):
        assert plain(text) == text


def test_line_ends_a_byte_order_mark_and_the_nuls_of_a_rotation_are_dropped() -> None:
    assert decode_line(b"\xef\xbb\xbfa\r") == ("a", False)
    assert decode_line(b"\x00" * 4096 + b"[2022-10-05") == ("[2022-10-05", False)


def test_control_characters_and_lone_surrogates_become_visible() -> None:
    assert clean("a\x00b\x07c\x9b\ud800") == "a\ufffdb\ufffdc\ufffd\ufffd"


def test_a_line_of_five_megabytes_is_cut_and_says_so() -> None:
    text, cut = decode_line(b"x" * 5_000_000)
    assert cut
    assert text.startswith("x" * LINE_BYTES)
    assert text.endswith(f"[cut: {5_000_000 - LINE_BYTES} more bytes in this line]")


def test_a_cut_within_a_character_leaves_no_broken_one() -> None:
    text, cut = decode_line(("x" * (LINE_BYTES - 1) + "é" * 10).encode())
    assert cut
    assert "\ufffd" not in text


@given(st.binary(max_size=200))
def test_any_bytes_become_text_that_can_be_written(value: bytes) -> None:
    text, _ = decode_line(value)
    assert not any(ord(c) < 32 and c not in "\t\n" for c in text)
    assert text.encode().decode() == text
