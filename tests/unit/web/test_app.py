"""The lines around a line of evidence, at an address of their own where they can be read."""

from __future__ import annotations

import re

from msgspec.structs import replace
from starlette.testclient import TestClient

from engine.errors import ReaderBusy
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.store import Store
from engine.web.app import PageInputs, application
from tests.unit.cli.incidents import TOO_LARGE, incident
from tests.unit.web.conftest import HOST, NOW, Fill
from tests.unit.web.test_pages import ADDRESS, HOSTILE, Tags


class Reader:
    """Knows what stands around the evidence `e1`, until the file is `gone`."""

    gone = False
    busy = False

    def may_read(self, evidence: Evidence) -> bool:
        return evidence.event_id == "e1"

    def neighbours(self, evidence: Evidence) -> Neighbours | None:
        if self.busy:
            raise ReaderBusy("other lines are being read")
        return None if self.gone else Neighbours((HOSTILE, "before\n\tat x"), ("after",))


def test_a_line_leads_to_what_stands_around_it_where_that_can_be_read(store: Store, fill: Fill) -> None:
    line, reader = TOO_LARGE.evidence[0], Reader()
    fill(incident(evidence=(line, replace(line, event_id="e2"))))
    client = TestClient(
        application(store, frozenset({HOST}), lambda: NOW, inputs=PageInputs(reader)), base_url=f"http://{HOST}"
    )
    page = client.get(ADDRESS).text
    assert re.findall(r'href="([^"]*/lines/[^"]*)"', page) == [f"{ADDRESS}/lines/1"]
    around = client.get(f"{ADDRESS}/lines/1").text
    Tags(around)
    order = ["&lt;script&gt;", "before\n  at x\n", f"<strong>{line.text[:20]}", "\nafter"]
    places = [around.index(part) for part in order]
    assert places == sorted(places)
    assert f'href="{ADDRESS}"' in around
    assert [client.get(f"{ADDRESS}/lines/{number}").status_code for number in (0, 2, 3)] == [404] * 3
    assert client.get("/incidents/inc-none/lines/1").status_code == 404
    reader.gone = True
    assert "cannot be read any more" in client.get(f"{ADDRESS}/lines/1").text
    reader.busy = True
    answer = client.get(f"{ADDRESS}/lines/1")
    assert (answer.status_code, answer.headers["retry-after"], "Try again" in answer.text) == (503, "2", True)


def test_without_a_reader_no_line_leads_on(client: TestClient, fill: Fill) -> None:
    fill(TOO_LARGE)
    assert "Lines around it" not in client.get(ADDRESS).text
    assert client.get(f"{ADDRESS}/lines/1").status_code == 404
