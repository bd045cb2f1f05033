from hypothesis import given
from hypothesis import strategies as st

from engine.model.origins import origin_of, origin_path

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def test_an_origin_is_readable() -> None:
    assert origin_of("elasticsearch", ".ds-logs-app-2026.11.26-000001", "pLx_-9") == (
        "elasticsearch:.ds-logs-app-2026.11.26-000001/pLx_-9"
    )


@given(st.lists(words, min_size=1, max_size=3))
def test_an_origin_gives_back_its_path(path: list[str]) -> None:
    assert origin_path(origin_of("elasticsearch", *path), "elasticsearch") == tuple(path)


def test_an_origin_in_another_system_has_no_path_in_this_one() -> None:
    assert origin_path("opensearch:a/b", "elasticsearch") == ()
    assert origin_path("", "elasticsearch") == ()
