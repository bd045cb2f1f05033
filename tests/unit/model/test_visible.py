from hypothesis import given
from hypothesis import strategies as st

from engine.model.visible import visible


def test_plain_text_of_any_language_is_unchanged() -> None:
    assert visible("ERROR 데이터_모니터링 [a=b] ünïcode") == "ERROR 데이터_모니터링 [a=b] ünïcode"


def test_a_colour_sequence_is_shown_and_not_obeyed() -> None:
    assert visible("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m"


def test_right_to_left_and_zero_width_marks_are_shown() -> None:
    assert visible("a\u202eb\u200bc\ufeff") == "a\\u202eb\\u200bc\\ufeff"


def test_tabs_become_blanks_and_line_ends_stay_on_the_line() -> None:
    assert visible("\tat x\r\n") == "  at x\\x0d\\x0a"


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    assert visible(text).isprintable()
