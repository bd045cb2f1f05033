"""An incident sees the picture before it began and the newest one; a value that can be one of few makes a step for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.incident.cluster_view import ClusterView, view_of, words_in
from engine.incident.present import with_present_values
from engine.language import words_of
from engine.model.blast import of_topic
from engine.model.expressions import LANGUAGE
from engine.model.incidents import EVER, Alert, RenderedStep
from engine.model.pictures import ClusterPicture
from engine.model.rules import Rule, Runbook, Step
from engine.model.words import ENGLISH
from tests.unit.incident.scene import NOON, alert, hole, minute, rule, text
from tests.unit.model.test_blast import scene
from tests.unit.model.test_pictures import group, lag, pictured, topic

RESET = Step(text("Look at it"), run=(text("describe"), text(hole("group", charset="word"))))
SILENT = replace(alert("broker-silent", 10), key=("prod", "broker-silent", (("broker", "1"),)))


def pictures_asked(*alerts: Alert, since: datetime = NOON) -> tuple[list[datetime], ClusterView]:
    """Return at which times pictures are looked up, and the view; nobody asked before `since`."""
    times: list[datetime] = []

    def picture(at: datetime) -> ClusterPicture | None:
        times.append(at)
        return replace(scene(), at=min(at, minute(99))) if at >= since else None

    return times, view_of(alerts[0], alerts, picture)


def test_the_picture_before_is_the_last_one_before_the_first_alert() -> None:
    times, view = pictures_asked(SILENT)
    assert times == [EVER, minute(10) - timedelta(microseconds=1)]
    assert view.radius is not None
    assert view.radius.at == minute(10) - timedelta(microseconds=1)


def test_an_incident_that_is_over_keeps_the_picture_of_its_end() -> None:
    over = replace(SILENT, status="resolved", ends_at=minute(20))
    assert pictures_asked(over)[0][0] == minute(20)


def test_before_anybody_asked_the_newest_picture_counts_and_without_one_nothing_is_seen() -> None:
    _, view = pictures_asked(SILENT, since=minute(50))
    assert view.radius is not None
    assert view.before == view.now
    assert view_of(SILENT, [SILENT], lambda _: None) == ClusterView()


def asked_at(*minutes: float) -> Callable[[datetime], ClusterPicture | None]:
    """Return the pictures of a cluster that was asked at these minutes, and stated all its facts at the first of them."""

    def picture(at: datetime) -> ClusterPicture | None:
        confirmed = [minute(number) for number in minutes if minute(number) <= at]
        settings_at = minute(minutes[0])
        return replace(scene(), at=at, confirmed_at=confirmed[-1], settings_at=settings_at) if confirmed else None

    return picture


def test_a_picture_of_a_cluster_that_nobody_asks_any_more_is_none() -> None:
    late = replace(SILENT, starts_at=minute(500), last_seen=minute(510))
    assert view_of(late, [late], asked_at(0, 370)) == ClusterView()
    assert view_of(late, [late], asked_at(0, 385)).before is not None
    resumed = view_of(late, [late], asked_at(0, 600))  # the first picture after it began
    assert resumed.before is resumed.now is not None
    ended = replace(late, status="resolved", ends_at=minute(515))
    assert view_of(ended, [ended], asked_at(0, 600)).now is not None
    ends_later = view_of(late, [late, replace(late, last_seen=minute(800))], asked_at(0, 490))
    assert (ends_later.before is None, ends_later.now) == (False, None)


def test_present_values_are_of_the_last_change_while_rounds_go_on() -> None:
    late = replace(SILENT, starts_at=minute(500), last_seen=minute(510))
    assert view_of(late, [late], asked_at(0, 505)).at == minute(510)
    assert view_of(late, [late], asked_at(0, 450)).at == minute(450)
    assert view_of(late, [late], asked_at(520, 530)).at == minute(520)  # it was changed since
    assert view_of(late, [late], lambda _: scene()).at is None


def of_group() -> Rule:
    return replace(rule("r"), runbook=Runbook(text("c"), text("i"), (RESET,)))


def test_a_value_that_can_be_one_of_few_makes_a_step_for_each() -> None:
    view = ClusterView(scene(), scene())
    steps = view.fix(of_group(), {}, {})
    assert [step.run for step in steps] == [f"describe {name}" for name in ("audit", "connect-archive", "shipping")]
    assert steps[0].do == "Look at it (group audit: the lines do not tell which of 3 it is)"
    (known,) = view.fix(of_group(), {"group": "known"}, {})
    assert (known.run, known.do) == ("describe known", "Look at it")


def test_a_single_value_is_not_certain_either() -> None:
    one = pictured(topic("orders"), group("shipping", "Empty"), lag("shipping", "orders", 4))
    (step,) = ClusterView(one, one).fix(of_group(), {}, {})
    assert (step.run, step.do) == ("describe shipping", "Look at it (group shipping: the lines do not name it)")


def test_a_step_that_changes_something_is_given_no_value_that_no_line_names() -> None:
    changing = replace(of_group(), runbook=Runbook(text("c"), text("i"), (replace(RESET, changes_state=True),)))
    one = pictured(topic("orders"), group("shipping", "Empty"), lag("shipping", "orders", 4))
    for radius in (None, of_topic("orders", one)):
        (step,) = ClusterView(one, one, radius).fix(changing, {}, {})
        assert (step.run, step.do) == (
            "describe ${group:?}",
            "Look at it (the lines do not name the group; it may be shipping)",
        )
    (step,) = ClusterView(scene(), scene()).fix(changing, {}, {})
    assert step.do == "Look at it (the lines do not name the group; it may be one of 3: audit, connect-archive, shipping)"


def test_of_many_values_some_are_named_and_none_is_chosen() -> None:
    many = scene(*(group(f"g-{number:02}") for number in range(20)))
    (step,) = ClusterView(many, many).fix(of_group(), {}, {})
    assert step.run == "describe ${group:?}"
    assert step.do == (
        "Look at it (the lines do not name the group; it may be one of 23: audit, connect-archive, g-00, g-01, g-02, ...)"
    )


def test_topics_of_the_cluster_itself_are_no_choice() -> None:
    step = Step(text("Look"), run=(text("topic"), text(hole("topic", charset="word"))))
    runbook = Runbook(text("c"), text("i"), (step,))
    picture = scene(topic("__consumer_offsets"))
    steps = ClusterView(picture, picture).fix(replace(rule("r"), runbook=runbook), {}, {})
    assert [each.run for each in steps] == ["topic account_event", "topic orders", "topic pairs"]


def test_what_is_touched_follows_the_impact_of_the_rule() -> None:
    view = pictures_asked(SILENT)[1]
    assert view.impact("It is away").startswith("It is away. As the cluster was at ")
    assert view.impact("").startswith("As the cluster was at ")
    assert ClusterView().impact("It is away") == "It is away"


def test_remarks_are_in_the_language_of_the_step_that_they_stand_in() -> None:
    korean = replace(RESET, do=replace(RESET.do, translations={"ko": ("확인합니다",)}))
    one = pictured(topic("orders"), group("shipping"))
    steps = (korean, replace(korean, changes_state=True), RESET)
    of_three = replace(rule("r"), runbook=Runbook(text("c"), text("i"), steps))
    in_korean = ClusterView(one, one).fix(of_three, {LANGUAGE: "ko"}, {}, words_of("ko"))
    assert [step.do for step in in_korean] == [
        "확인합니다 (그룹 shipping: 로그에 나온 이름이 아님)",
        "확인합니다 (로그에 그룹 이름이 없음. shipping일 수 있음)",
        "Look at it (group shipping: the lines do not name it)",
    ]
    assert words_in(text("It is away"), words_of("ko")) is ENGLISH
    limit = RenderedStep("토픽 한도를 올립니다", "topic", set={"max.message.bytes": "5"})
    big = scene(topic("big", configs="max.message.bytes=5"))
    shown = with_present_values(limit, "big", big, minute(0), words_of("ko")).do
    assert (
        shown == "이미 적용됨: 토픽 한도를 올립니다 (토픽 big의 max.message.bytes = 5(토픽에 설정); 2022-10-05 12:00 UTC 기준)"
    )
