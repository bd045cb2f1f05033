"""A proof (engine/model/proofs.py) is told to the receiver that was asked for it, and to nobody else, whatever routes say."""

from __future__ import annotations

from datetime import timedelta

import pytest

from connectors.memory import MemoryReceiver
from engine.deliver import Policy
from engine.model.incidents import Incident
from engine.model.proofs import PROOF_RULE, Proof
from engine.model.routes import Route
from engine.store import Store
from tests.unit.deliver.scene import START, Scene


@pytest.fixture
def receivers() -> dict[str, MemoryReceiver]:
    return {name: MemoryReceiver() for name in ("ops", "chat")}


@pytest.fixture
def scene(store: Store, receivers: dict[str, MemoryReceiver]) -> Scene:
    return Scene(store, receivers, Policy(Route("ops"), storm_size=1))


def put(scene: Scene, nonce: str, id: str = "inc-1") -> Incident:
    return scene.put(id=id, rule=PROOF_RULE, severity="low", labels={"cluster": "default", "proof": nonce})


def begin(scene: Scene, nonce: str, receiver: str, until_s: float = 600) -> None:
    scene.store.proofs().begin(Proof(nonce, receiver, START + timedelta(seconds=until_s)), START)


def told(receivers: dict[str, MemoryReceiver]) -> dict[str, list[str]]:
    return {name: [sent.incident.id for sent in receiver.notifications] for name, receiver in receivers.items()}


def test_only_the_receiver_that_was_asked_is_told_and_at_once(scene: Scene, receivers: dict[str, MemoryReceiver]) -> None:
    begin(scene, "abc", "chat")
    put(scene, "abc")
    assert scene.at(0) == 1
    assert told(receivers) == {"ops": [], "chat": ["inc-1"]}


@pytest.mark.parametrize("receiver", ["", None])
def test_without_a_receiver_and_for_a_line_that_somebody_else_wrote_nobody_is_told(
    scene: Scene, receivers: dict[str, MemoryReceiver], receiver: str | None
) -> None:
    if receiver is not None:
        begin(scene, "abc", receiver)
    put(scene, "abc")
    assert [scene.at(0), scene.at(3600)] == [0, 0]
    assert told(receivers) == {"ops": [], "chat": []}


def test_a_line_that_is_read_again_after_its_time_is_told_to_nobody(scene: Scene, receivers: dict[str, MemoryReceiver]) -> None:
    begin(scene, "abc", "chat", until_s=60)
    scene.at(61)
    put(scene, "abc")
    assert scene.at(62) == 0
    assert told(receivers) == {"ops": [], "chat": []}


def test_a_receiver_that_keeps_a_record_keeps_none_of_a_proof(store: Store) -> None:
    receivers = {"ops": MemoryReceiver(), "archive": MemoryReceiver(records=True)}
    scene = Scene(store, receivers)
    put(scene, "abc")
    assert scene.at(3600) == 0


def test_a_proof_is_no_part_of_a_storm(scene: Scene, receivers: dict[str, MemoryReceiver]) -> None:
    for number in range(4):
        begin(scene, f"abc{number}", "chat")
        put(scene, f"abc{number}", f"inc-{number}")
    scene.at(0)
    assert told(receivers)["chat"] == [f"inc-{number}" for number in range(4)]
