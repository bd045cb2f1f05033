from __future__ import annotations

from engine.dsl.detection import Detection, detection
from engine.dsl.document import MapNode
from engine.match.checks import compile_check
from engine.match.fields import Fields
from engine.model.expressions import names
from engine.model.rules import Test
from tests.building import event
from tests.unit.dsl.writing import read_map


def compiled(text: str) -> Detection:
    root, report = read_map(text)
    assert isinstance(root, MapNode)
    made = detection(root, report)
    assert not report.all(), [found.one_line() for found in report.all()]
    return made


def groups(made: Detection, name: str) -> list[list[tuple[str, str, str]]]:
    item = next(item for item in made.items if item.name == name)
    return [[(test.field, test.op, test.value) for test in group] for group in item.any_of]


def test_a_text_is_a_pattern_over_the_whole_event() -> None:
    made = compiled("seen: something {what}\ncondition: seen")
    assert groups(made, "seen") == [[("text", "pattern", "something {what}")]]
    assert made.captures == {"what": "word"}
    assert names(made.condition) == {"seen"}


def test_a_list_is_any_of_its_entries() -> None:
    made = compiled("seen: ['one {n:int}', two, {level: ERROR}]\ncondition: seen")
    assert groups(made, "seen") == [
        [("text", "pattern", "one {n:int}")],
        [("text", "pattern", "two")],
        [("level", "pattern", "ERROR")],
    ]


def test_a_map_is_all_of_its_fields_and_a_list_in_it_any_of_its_values() -> None:
    made = compiled("seen: {logger|endswith: [A, B], level: ERROR, labels.container|exists: true}\ncondition: seen")
    rest = [("level", "pattern", "ERROR"), ("labels.container", "exists", "true")]
    assert groups(made, "seen") == [[("logger", "endswith", "A"), *rest], [("logger", "endswith", "B"), *rest]]


def test_all_makes_a_list_mean_every_value() -> None:
    made = compiled("seen: {text|contains|all: [one, two]}\ncondition: seen")
    assert groups(made, "seen") == [[("text", "contains", "one"), ("text", "contains", "two")]]


def test_nocase_is_a_flag_of_the_test_and_of_its_expression() -> None:
    made = compiled("seen: {message|nocase: Some Text}\ncondition: seen")
    test = made.items[0].any_of[0][0]
    assert test == Test("message", "pattern", "Some Text", r"(?i)Some\s+Text", nocase=True, signs=("some text",))


def test_named_groups_of_a_regular_expression_are_captures() -> None:
    made = compiled("seen: {thread|re: 'worker-(?P<worker_id>[0-9]+)'}\ncondition: seen and worker_id != '7'")
    assert made.captures == {"worker_id": "word"}
    assert made.items[0].any_of[0][0].captures[0].group == 1


def test_alternatives_of_an_expression_may_share_a_name() -> None:
    made = compiled("seen: {text|re: 'lost (?P<topic>[a-z]+)|(?P<topic>[a-z]+) is gone'}\ncondition: seen")
    check = compile_check(made.items[0].any_of[0][0])
    assert [check(Fields(event(text))) for text in ("lost orders", "orders is gone")] == [{"topic": "orders"}] * 2


def test_an_item_may_share_its_name_with_a_capture_that_is_not_compared() -> None:
    assert compiled('topic: "Topic {topic} is gone"\ncondition: topic').captures == {"topic": "word"}
