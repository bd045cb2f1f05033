"""What leads on from an incident: its page, and Kibana at its time and place, in the notation of each Kibana version."""

from datetime import timedelta
from urllib.parse import unquote

import pytest

from engine.model.links import NO_LINKS, Kibana, LinkTargets
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

TIMES = "_g=(time:(from:'2023-02-03T02:00:02.285Z',to:'2023-02-03T02:10:07.285Z'))"
REST = "query:(language:kuery,query:''))"


@pytest.mark.parametrize(
    ("version", "place"),
    [
        ((7, 8), f"/app/kibana#/discover?{TIMES}&_a=(columns:!(message),index:'logs-*',{REST}"),
        ((7, 9), f"/app/discover#/?{TIMES}&_a=(columns:!(message),index:'logs-*',{REST}"),
        ((8, 14), f"/app/discover#/?{TIMES}&_a=(columns:!(message),index:'logs-*',{REST}"),
        ((8, 15), f"/app/discover#/?{TIMES}&_a=(columns:!(message),dataSource:(dataViewId:'logs-*',type:dataView),{REST}"),
        ((9, 1), f"/app/discover#/?{TIMES}&_a=(columns:!(message),dataSource:(dataViewId:'logs-*',type:dataView),{REST}"),
    ],
)
def test_discover_is_opened_as_the_version_of_kibana_wants(version: tuple[int, int], place: str) -> None:
    assert unquote(Kibana("https://k", "logs-*", version).address(TOO_LARGE)) == f"https://k{place}"


def test_labels_narrow_the_logs_by_the_fields_that_hold_them() -> None:
    kibana = Kibana("https://k/base", "v", space="my ops", fields={"broker": "labels.broker", "cluster": "orchestrator"})
    address = kibana.address(incident(labels={"cluster": "default", "broker": "1", "topic": "a"}))
    assert address.startswith("https://k/base/s/my%20ops/app/discover#/?")
    assert 'query:\'labels.broker: "1" and orchestrator: "default"\'' in unquote(address)


def test_what_a_label_holds_stays_inside_its_quotes() -> None:
    kibana = Kibana("https://k", "v", fields={"topic": "topic"})
    address = kibana.address(incident(labels={"topic": "a\"b\\c'd!e&f#g|h>i j"}))
    assert not set(address.partition("#/?")[2]) & set('"\\#|> ')
    assert address.count("&") == 1
    assert "query:'topic: \"a\\\"b\\\\c!'d!!e&f#g|h>i j\"'" in unquote(address)


def test_an_ended_incident_is_shown_to_its_end_and_one_without_times_not_at_all() -> None:
    kibana = Kibana("https://k", "v")
    assert "to:'2023-02-03T03:10:02.285Z'" in kibana.address(incident(resolved_at=AT + timedelta(hours=1)))
    assert kibana.address(incident(first_seen=None, last_seen=None)) == ""


def test_a_page_is_below_the_public_address_and_a_part_leads_to_the_whole() -> None:
    links = LinkTargets("https://tocsin.example", Kibana("https://k", "v"))
    assert [link.kind for link in links.of(TOO_LARGE)] == ["incident", "kibana"]
    assert links.of(TOO_LARGE)[0].url == "https://tocsin.example/incidents/inc-0123456789"
    assert links.of(incident(status="merged", merged_into="inc-2"))[0].url == "https://tocsin.example/incidents/inc-2"
    assert NO_LINKS.of(TOO_LARGE) == ()
