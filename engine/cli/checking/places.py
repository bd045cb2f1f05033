"""Check what is on this machine: the store, the checkpoint, the address of the pages, Java."""

from __future__ import annotations

from collections.abc import Iterator

from engine.cli.checking.outcomes import CheckedItem, CheckOutcome, of_inspection
from engine.cli.spark_start import resources_of
from engine.config import Secret, Settings
from engine.errors import FenceError, ListenError, RuntimeMissing, StoreError, UsageError
from engine.spark.fence import refuse_lost_store
from engine.spark.session import check_runtime
from engine.spark.spark_settings import spark_settings, without_user
from engine.store.probing import inspected_store, unwritable


def checked_places(settings: Settings) -> Iterator[CheckedItem]:
    """Yield the outcome for the store, the checkpoint, the address of the pages, and Java."""
    yield from _storage(settings)
    yield _pages(settings)
    yield from _sign_in(settings)
    yield from _monitoring(settings)
    yield _runtime()
    yield from _spark(settings)


def _storage(settings: Settings) -> Iterator[CheckedItem]:
    name = str(settings.store)
    try:
        yield of_inspection("store", name, inspected_store(settings.store))
    except UsageError as error:
        yield CheckedItem("store", name, CheckOutcome.WRONG, str(error))
    except (StoreError, RuntimeMissing) as error:
        yield CheckedItem("store", name, CheckOutcome.FAILED, str(error))
    name = str(settings.checkpoint)
    if problem := unwritable(settings.checkpoint):
        yield CheckedItem("checkpoint", name, CheckOutcome.FAILED, f"cannot be written: {problem}")
        return
    try:
        refuse_lost_store(settings.store.path, settings.checkpoint)
    except (FenceError, StoreError) as error:
        yield CheckedItem("checkpoint", name, CheckOutcome.FAILED, str(error))
        return
    state = "is there and can be written" if settings.checkpoint.exists() else "will be created"
    yield CheckedItem("checkpoint", name, CheckOutcome.OK, state)
    if settings.checkpoint_url:
        yield CheckedItem("checkpoint", settings.checkpoint_url, CheckOutcome.WARNING, "not looked at: only Spark can reach it")


def _pages(settings: Settings) -> CheckedItem:
    web = settings.web
    name = f"[{web.host}]:{web.port}" if ":" in web.host else f"{web.host}:{web.port}"
    try:
        from engine.web.server import listen_on  # noqa: PLC0415  (needs the extra `web`)
    except ImportError as missing:
        sentence = f"not served: needs the package {missing.name}: pip install 'tocsin[web]'"
        return CheckedItem("pages", name, CheckOutcome.WARNING, sentence)
    try:
        listen_on(web.host, web.port, web.public_url, web.auth is not None).socket.close()
    except UsageError as error:
        return CheckedItem("pages", name, CheckOutcome.WRONG, str(error))
    except ListenError as error:
        return CheckedItem("pages", name, CheckOutcome.WARNING if error.in_use else CheckOutcome.WRONG, str(error))
    return CheckedItem("pages", name, CheckOutcome.OK, "can be listened on")


def _sign_in(settings: Settings) -> Iterator[CheckedItem]:
    auth = settings.web.auth
    if auth is None:
        return
    try:
        from engine.cli.entrance import usable_secret  # noqa: PLC0415  (needs the extra `web`)
        from engine.web.passwords import Users  # noqa: PLC0415
    except ImportError:
        return  # it is reported of the address
    if auth.users is not None and not auth.users.is_file():
        sentence = "there is no such file; tocsin web passwd NAME writes it"
        yield CheckedItem("pages", str(auth.users), CheckOutcome.WRONG, sentence)
    elif auth.users is not None:
        try:
            Users(auth.users).hashes()
        except UsageError as error:
            yield CheckedItem("pages", str(auth.users), CheckOutcome.WRONG, str(error))
    if auth.secret is not None or auth.secret_file.exists():
        try:
            usable_secret(auth)
        except UsageError as error:
            yield CheckedItem("pages", "auth.secret", CheckOutcome.WRONG, str(error))


def _monitoring(settings: Settings) -> Iterator[CheckedItem]:
    if settings.heartbeat is not None and isinstance(settings.heartbeat.url, Secret):
        try:
            settings.heartbeat.url.reveal()
            yield CheckedItem(
                "heartbeat", str(settings.heartbeat.url), CheckOutcome.OK, "the address can be read; it was not called"
            )
        except UsageError as error:
            yield CheckedItem("heartbeat", "url", CheckOutcome.WRONG, str(error))
    if settings.metrics is None:
        return
    name = f"{settings.metrics.host}:{settings.metrics.port}"
    try:
        from engine.web.server import listen_anywhere  # noqa: PLC0415  (needs the extra `web`)

        listen_anywhere(settings.metrics.host, settings.metrics.port, "metrics.listen").socket.close()
    except ImportError as missing:
        sentence = f"not served: needs the package {missing.name}: pip install 'tocsin[web]'"
        yield CheckedItem("metrics", name, CheckOutcome.FAILED, sentence)
    except ListenError as error:
        outcome = CheckOutcome.WARNING if error.in_use else CheckOutcome.WRONG
        yield CheckedItem("metrics", name, outcome, str(error))
    else:
        yield CheckedItem("metrics", name, CheckOutcome.OK, "can be listened on")


def _spark(settings: Settings) -> Iterator[CheckedItem]:
    """Yield the outcome for the master of a cluster and the settings of Spark; nothing without them."""
    if settings.master is None and not settings.conf:
        return
    try:
        decided = spark_settings(resources_of(settings), settings.checkpoint)
    except UsageError as error:
        yield CheckedItem("spark", "conf", CheckOutcome.WRONG, str(error))
        return
    name = without_user(decided.master)
    yield from (CheckedItem("spark", name, CheckOutcome.WARNING, sentence) for sentence in decided.sentences)
    if not decided.sentences:
        yield CheckedItem("spark", name, CheckOutcome.OK, "its settings can be used; the master was not asked")


def _runtime() -> CheckedItem:
    try:
        check_runtime()
    except RuntimeMissing as error:
        return CheckedItem("java", "java", CheckOutcome.FAILED, str(error))
    return CheckedItem("java", "java", CheckOutcome.OK, "Java and Spark are installed")
