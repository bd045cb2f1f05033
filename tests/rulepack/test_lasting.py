"""What ended, was killed, fenced or removed is not over because nothing more is printed; and grades fit what is at stake."""

from __future__ import annotations

import re

import pytest

from engine.model.rules import SEVERITIES, Rule, Template
from tests.rulepack.playing import Story, plan, play

ENDED = re.compile(
    r"\b(?:is dead|killed|(?:was|is) fenced|fenced (?:by|the broker)|for good|member was removed|is empty|ends the program"
    r"|(?:does|do|did|can) ?not start|not run\b|worker stops|stopped working|crashed|aborted|process[^:]{0,40} ended"
    r"|ran out of memory|has stopped|out of service)\b",
    re.IGNORECASE,
)
# Rules that tell of an end in some of their cases only: in the others the client or the server goes on and tries again.
ENDS_IN_SOME_CASES = frozenset(
    (
        *(
            "broker-remote-storage-failed",
            "broker-unclean-shutdown-recovery",
            "client-thread-failed",
            "connect-dlq-write-failed",
        ),
        *("cruise-control-failed", "share-init-failed", "streams-store-not-queryable", "strimzi-pod-not-rollable"),
        *("strimzi-reconciliation-stuck", "zookeeper-quorum-lost", "client-storage-error", "client-kerberos-login-failed"),
    )
)


def words(template: Template | None) -> str:
    return "".join(part if isinstance(part, str) else "..." for part in template.parts) if template is not None else ""


def titles(rule: Rule) -> list[str]:
    return [words(rule.title), *(words(case.title) for case in rule.runbook.cases)]


def opening() -> list[Rule]:
    """Return the rules that can open an incident and whose end is decided by what is printed of them."""
    absent = {correlation.rule.id for correlation in plan().correlations if correlation.type in ("absence", "pair")}
    rules = (rule for id_, rule in plan().rules().items() if id_ not in absent)
    return [rule for rule in rules if rule.severity != SEVERITIES[0] or rule.escalate or rule.told_as]


def test_what_has_ended_is_not_over_by_silence() -> None:
    ended = {rule.id: told for rule in opening() if (told := [title for title in titles(rule) if ENDED.search(title)])}
    by_silence = {id_: told for id_, told in ended.items() if not plan().rules()[id_].clear.lasts}
    assert by_silence.keys() <= ENDS_IN_SOME_CASES, by_silence


def test_what_is_excused_from_that_is_so_for_a_reason() -> None:
    assert {id_ for id_ in ENDS_IN_SOME_CASES if plan().rules()[id_].clear.lasts} == set()


ONCE = (
    "[2026-11-21 08:07:30,449] WARN [Producer clientId=p-1] Connection to node 1 (/10.0.0.1:9092) could not be established. "
    "Node may not be available. (org.apache.kafka.clients.NetworkClient)\n",
    "[2026-11-21 08:07:30,449] INFO [BrokerLifecycleManager id=1] Unable to send a heartbeat because the RPC got timed out "
    "before it could be sent. (kafka.server.BrokerLifecycleManager)\n",
    "[2026-11-21 08:07:30,449] INFO [RaftManager id=1] Election has timed out, backing off for 500ms before becoming a "
    "candidate again (org.apache.kafka.raft.KafkaRaftClient)\n",
    "[2026-11-21 08:07:30,449] WARN [Consumer clientId=c-1, groupId=g] Error while fetching metadata with correlation id 2 : "
    "{orders=LEADER_NOT_AVAILABLE} (org.apache.kafka.clients.NetworkClient)\n",
)


@pytest.mark.slow
@pytest.mark.parametrize("line", ONCE)
def test_a_single_attempt_that_is_refused_stays_low(line: str) -> None:
    assert {incident.severity for incident in play(Story({"app.log": line}))} <= {"info", "low"}


WORKER = " (org.apache.kafka.connect.runtime.WorkerTask:196)\n"
KILLED = (
    "[2023-02-03 02:05:07,328] ERROR [shop|task-0] WorkerSinkTask{id=shop-0} Task threw an uncaught and unrecoverable "
    f"exception. Task is being killed and will not recover until manually restarted{WORKER}"
    "org.apache.kafka.connect.errors.ConnectException: x\n"
)
LATER = f"[2023-02-03 09:05:07,328] INFO [other|task-0] a line of hours later{WORKER}"
STARTED = (
    "[2023-02-03 02:15:02,285] INFO [shop|task-0] WorkerSinkTask{id=shop-0} "
    f"Sink task finished initialization and start{WORKER}"
)
OTHER = STARTED.replace("shop", "store")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("between", "status"),
    [("", "open"), (STARTED, "resolved"), (OTHER, "open")],
    ids=["silence", "it starts", "another starts"],
)
def test_a_killed_task_is_over_when_it_starts_again(between: str, status: str) -> None:
    (incident,) = play(Story({"connect.log": KILLED + between + LATER}))
    assert (incident.rule, incident.status) == ("connect-task-killed", status)
