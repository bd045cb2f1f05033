"""A whole run with a person: logs become a message, a press of its button an act, and message, store and timeline show it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.running import CHANNEL, ROOT, TOKEN_NAME, tocsin
from tests.standins.slack_socket import APP_TOKEN, SlackWithPeople

WITHIN_S = 240.0  # of a machine that does much else; alone it takes half a minute
STORY = ROOT / "samples" / "5-rebalance-storm"
CONFIG = """
sources:
  - {{type: files, paths: ["{story}"], labels: {{cluster: story-5}}, timezone: Asia/Seoul, start: earliest}}
receivers:
  - name: ops
    language: ko
    slack: {{channel: "#{channel}", token: "env:{token}", app_token: "file:app-token", base_url: "{base_url}"}}
route: {{receiver: ops, group_wait: 0s}}
notify_max_age: 0s
store: sqlite:///./tocsin.db
"""

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(600)]


def until(holds: Callable[[], object], what: str) -> None:
    """Return when `holds` is true."""
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {WITHIN_S:.0f} s"
        time.sleep(0.1)


def shown(config: Path, *arguments: str) -> str:
    """Return what `tocsin incidents` prints while the run goes on."""
    command = [sys.executable, "-m", "engine.cli.main", "incidents", *arguments, "-c", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True).stdout


def test_a_press_of_acknowledge_is_in_the_message_the_store_and_the_timeline_with_the_name(tmp_path: Path) -> None:
    with SlackWithPeople() as slack:
        config = tmp_path / "tocsin.yml"
        config.write_text(CONFIG.format(story=STORY, channel=CHANNEL, token=TOKEN_NAME, base_url=slack.base_url))
        (tmp_path / "app-token").write_text(APP_TOKEN)
        with tocsin("-c", config) as running:
            until(lambda: slack.parents() and slack.files, "a message and its picture")
            slack.wait_connected()
            (message,) = slack.parents()
            assert message["text"].startswith("높음: eastglow-consume-group: 컨슈머가 그룹에서 제외되어 커밋하지 못함")
            (row,) = [block for block in message["blocks"] if block["type"] == "actions"]
            assert [button["text"]["text"] for button in row["elements"]] == ["확인", "2시간 알림 중지", "해결"]
            assert [file["thread_ts"] for file in slack.files] == [message["ts"]]
            assert slack.answer(slack.click(message, "acknowledge", "jun"), WITHIN_S) is None
            until(lambda: "높음, 확인됨" in str(message["blocks"]), "the edit of the message")
            until(lambda: "jun 님이 담당합니다" in str(slack.replies(message)), "the line in the thread")
            id_ = message["metadata"]["event_payload"]["key"]
            incident = json.loads(shown(config, "show", id_, "--format", "json"))
            text = shown(config, "show", id_)
            assert running.alive
    assert (incident["status"], incident["owner"], incident["handling"]["by"]) == ("acknowledged", "jun", "jun")
    assert [(act["by"], act["via"], act["kind"]) for act in incident["acts"]] == [("jun", "slack", "acknowledge")]
    (line,) = [line for line in text.splitlines() if "jun" in line and "acknowledged" in line]
    assert "slack" in line
    assert len(slack.parents()) == 1 and slack.whispers == []
