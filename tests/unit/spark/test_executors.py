"""A cluster that gives no executors is noticed, and after a while that ends the run. A master that has gone is noticed too."""

from __future__ import annotations

from engine.spark.executors import ENDS_AFTER_S, LOOK_EVERY_S, REPORTED_AFTER_S, ClusterAbsence, ExecutorWatch, check_absence

MASTER = "spark://node-a:7077"


def test_no_absence_while_there_are_executors() -> None:
    assert check_absence(None, 1, 0.0) is None
    assert check_absence(ClusterAbsence(0.0, reported=True), 2, 100.0) is None


def test_an_absence_is_reported_after_a_while_and_ends_the_run_later() -> None:
    begun = check_absence(None, 0, 100.0)
    assert begun == ClusterAbsence(100.0)
    assert check_absence(begun, 0, 100.0 + REPORTED_AFTER_S - 1) == begun
    reported = check_absence(begun, 0, 100.0 + REPORTED_AFTER_S)
    assert reported == ClusterAbsence(100.0, reported=True)
    assert check_absence(reported, 0, 100.0 + ENDS_AFTER_S) == ClusterAbsence(100.0, reported=True, ended=True)


class Cluster:
    """A cluster as a watch sees it, and what that says; time goes on by `seconds`."""

    def __init__(self, master: str = MASTER) -> None:
        self.executors, self.has_master, self.now_s = 2, True, 0.0
        self.said: list[str] = []
        self._watch = ExecutorWatch(master, lambda: self.executors, self.said.append, lambda _: self.has_master)

    def error_after(self, seconds: float) -> str:
        """Look for so long; return the error that the run ended with, empty while it goes on."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += LOOK_EVERY_S
            if (error := self._watch.look(self.now_s)) is not None:
                return str(error)
        return ""


def test_a_master_that_has_gone_is_told_once_with_its_address_and_so_is_its_return() -> None:
    cluster = Cluster("spark://me:secret@node-a:7077")
    cluster.has_master = False
    assert cluster.error_after(10 * ENDS_AFTER_S) == ""
    assert cluster.said == [
        f"{MASTER} has not answered for 30 s: the run goes on with the executors that it has (2), and gets no others until the"
        " master is back"
    ]
    cluster.has_master = True
    assert cluster.error_after(60) == ""
    assert cluster.said[1:] == [f"{MASTER} answers again"]


def test_a_master_that_is_back_soon_is_not_told() -> None:
    cluster = Cluster()
    for _ in range(5):
        cluster.has_master = not cluster.has_master
        cluster.error_after(REPORTED_AFTER_S - LOOK_EVERY_S)
    assert cluster.said == []


def test_without_executors_the_run_ends_and_says_whether_its_master_answers() -> None:
    cluster = Cluster()
    cluster.executors = 0
    ended = f"{MASTER} gives this run no executor; start again when it has workers: it goes on where it ended"
    assert cluster.error_after(2 * ENDS_AFTER_S) == ended
    assert cluster.said == [
        f"{MASTER} has given this run no executor for 30 s: are there workers with a free core and enough memory? The run ends"
        " after 300 s without one"
    ]
    alone = Cluster()
    alone.executors, alone.has_master = 0, False
    assert alone.error_after(2 * ENDS_AFTER_S) == ended.replace("executor;", "executor and does not answer;")
    assert alone.said == [
        f"{MASTER} has given this run no executor for 30 s: it does not answer; start it again. The run ends after 300 s"
        " without one"
    ]


def test_a_local_run_looks_for_nothing() -> None:
    cluster = Cluster("local[2]")
    cluster.executors, cluster.has_master = 0, False
    assert (cluster.error_after(2 * ENDS_AFTER_S), cluster.said) == ("", [])
