"""Gather what is known of a run from outside its process: locks, store, checkpoint, and /readyz. Changes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from shutil import disk_usage
from socket import gethostname
from urllib.error import URLError
from urllib.request import Request

from msgspec import Struct

from engine.cli.doctor.rule_times import RuleTimes
from engine.cli.resuming import planned_offsets
from engine.cli.state_size import checkpoint_bytes, store_bytes
from engine.config import MetricsSettings, Settings
from engine.deliver.leading import NOTIFIER
from engine.errors import RuntimeMissing, StoreError, UsageError
from engine.exchange import exchange
from engine.model.acts import RuleStats
from engine.model.rules import OWN
from engine.model.searches import Search
from engine.model.statuses import JobStatus, NotifierStatus, ReceiverHistory
from engine.spark.fence import JOB
from engine.spark.stalls import Stall
from engine.store import Store, schema
from engine.store.locks import lock_holder
from engine.store.probing import inspected_store, stored_version

BUSY_S = 2.0
STATS_OF = timedelta(days=1)
OWN_SHOWN = 20


class StoreFacts(Struct, frozen=True):
    """What a store that can be read holds.

    Attributes:
        holders: the process of each part that is at work, by `job` and `notifier`.
        time_s: the clock of the database, in seconds since 1970.
        outbox: deliveries by receiver and state.
        own: the titles of the open incidents about tocsin's own input.
        rule_errors: dead letters by the rule that failed.
        rules: the rules of the incidents that began within STATS_OF.
    """

    version: int
    size_bytes: int
    incidents: int
    holders: Mapping[str, str]
    time_s: float
    last_batch_at: datetime | None
    job: JobStatus | None
    notifier: NotifierStatus | None
    outbox: Mapping[tuple[str, str], int]
    histories: Sequence[ReceiverHistory]
    own: Sequence[str]
    losses: int
    dead_letters: int
    rule_errors: Mapping[str, int]
    rules: Sequence[RuleStats]
    unjudged: int


class RunFacts(Struct, frozen=True):
    """What is known of a run at `now_s`, in seconds since 1970 by the clock of this machine.

    Attributes:
        store: None when it cannot be read; `store_error` says why.
        stalls: what could not be read when the last batch was planned.
        sources: the names of the sources that were read or waited for.
        checkpoint_bytes: the size of its files; None when there is no checkpoint on this machine.
        free_bytes: the free space of the disk of each of these folders on this machine.
        unseen: the checkpoint, when it is not on this machine and the sources are not known therefore; empty when it is.
        ready_url: the address of /readyz; empty when `metrics` is not configured.
        ready: the answer of /readyz; None when nothing is served, or nothing answers.
        is_here: the job is a process of this machine.
        rule_times: what the rules cost on the latest lines; None when that was not measured.
    """

    now_s: float
    receivers: Sequence[str]
    store_name: str
    store: StoreFacts | None
    store_error: str = ""
    checkpoint: str = ""
    checkpoint_bytes: int | None = None
    free_bytes: Mapping[str, int] = {}
    stalls: Sequence[Stall] = ()
    sources: Sequence[str] = ()
    unseen: str = ""
    ready_url: str = ""
    ready: str | None = None
    is_here: bool = False
    rule_times: RuleTimes | None = None

    @property
    def now(self) -> datetime:
        """The time by the clock of this machine."""
        return datetime.fromtimestamp(self.now_s, UTC)


def gather(settings: Settings) -> RunFacts:
    """Return what is known of the run of `settings` now."""
    store, error = _store_facts(settings)
    offsets = planned_offsets(settings.checkpoint)
    folders = [settings.checkpoint, *([settings.store.path.parent] if settings.store.path is not None else [])]
    size_bytes = checkpoint_bytes(settings.checkpoint)
    ready_url = "" if settings.metrics is None else _ready_url(settings.metrics)
    return RunFacts(
        time.time(),
        [receiver.name for receiver in settings.receivers],
        str(settings.store),
        store,
        error,
        str(settings.checkpoint),
        size_bytes,
        {str(folder): free for folder in folders if (free := _free_bytes(folder)) is not None},
        offsets.stalls,
        sorted(offsets.sources),
        settings.checkpoint_url or (str(settings.checkpoint) if size_bytes is None else ""),
        ready_url,
        _ready(ready_url) if ready_url else None,
        store is not None and _is_here(store.holders.get(JOB, ""), settings),
    )


def _is_here(holder: str, settings: Settings) -> bool:
    """Return whether the process is one of this machine: a lock file names no other, a lease names the machine."""
    return bool(holder) and (settings.store.path is not None or holder.endswith(f" on {gethostname()}"))


def _free_bytes(folder: Path) -> int | None:
    """Return the free space of the disk of a folder; None when it is not there or this user may not enter it."""
    try:
        return disk_usage(folder).free
    except OSError:
        return None


def _store_facts(settings: Settings) -> tuple[StoreFacts | None, str]:
    """Return the facts of the store, or None and why there are none. A store is neither created nor brought up to date."""
    path = settings.store.path
    try:
        if path is not None and not path.exists():
            return None, f"there is no {path}: no run has used it yet"
        inspection = inspected_store(settings.store)
        if inspection.level is not None:
            return None, inspection.sentence
        version = stored_version(settings.store)
        if version != schema.SCHEMA_VERSION:
            return None, f"it has schema {version}, this version {schema.SCHEMA_VERSION}: the next start brings it up to date"
        store = Store.open(settings.store, BUSY_S)
        try:
            return _read(store, path, version), ""
        finally:
            store.close()
    except (StoreError, RuntimeMissing, UsageError) as error:
        return None, str(error)
    except OSError as error:
        return None, f"{error.filename or path}: {error.strerror or error}; ask as the user of the run, or as root"


def _read(store: Store, path: Path | None, version: int) -> StoreFacts:
    statuses, written_at, letters = store.statuses(), store.written_at(), store.quarantined()
    own, _ = store.search(Search(states=("open", "acknowledged"), component=OWN), OWN_SHOWN)
    return StoreFacts(
        version,
        store_bytes(store, path),
        sum(store.incident_counts().values()),
        statuses.lease_holders() if path is None else dict(_lock_holders(path)),
        statuses.time_s(),
        datetime.fromisoformat(written_at) if written_at else None,
        statuses.job(),
        statuses.notifier(),
        store.outbox().counts(),
        statuses.receiver_histories(),
        [incident.title for incident in own],
        len(store.losses()),
        len(letters),
        Counter(letter.rule_id for letter in letters if letter.rule_id),
        store.rule_stats(datetime.now(UTC) - STATS_OF),
        len(store.blinds()),
    )


def _lock_holders(path: Path) -> Mapping[str, str]:
    locks = {JOB: f"{path.name}.lock", NOTIFIER: f"{path.name}.{NOTIFIER}.lock"}
    holders = {part: lock_holder(path.with_name(name)) for part, name in locks.items()}
    return {part: holder for part, holder in holders.items() if holder is not None}


def _ready_url(settings: MetricsSettings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/readyz"


def _ready(url: str) -> str | None:
    try:
        answer = exchange(Request(url), BUSY_S)  # noqa: S310
    except (HTTPException, URLError, OSError, ValueError):
        return None
    return answer.text.strip()
