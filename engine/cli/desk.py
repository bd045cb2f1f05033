"""The desk: where receivers record what people do in Slack, beside the job and the notifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from engine.config import Settings, SlackSettings
from engine.language import words_of
from engine.model.acts import Act
from engine.model.incidents import Incident
from engine.model.searches import Search
from engine.model.words import ENGLISH
from engine.ports import ActAnswer, Receiver, Say
from engine.secrets import revealed
from engine.store import Store


class StoreDesk:
    """The desk over a store; `acted` is called after each act that had an effect."""

    def __init__(self, store: Store, acted: Callable[[], None]) -> None:
        self._store, self._acted = store, acted

    def record(self, act: Act) -> ActAnswer:
        """Record an act (see Acts.record)."""
        recorded = self._store.acts().record(act)
        if recorded.act is not None and not recorded.is_repeated:
            self._acted()
        return ActAnswer(recorded.decision, recorded.incident, recorded.is_repeated)

    def find(self, prefix: str) -> Incident:
        """Return the only incident whose id begins with `prefix`, as it is shown."""
        return self._store.acts().incident(self._store.acts().id_of(prefix))

    def going_on(self, limit: int) -> tuple[Sequence[Incident], int]:
        """Return the incidents that are open or acknowledged, severe ones first, and how many there are."""
        incidents, counts = self._store.search(Search(states=("open", "acknowledged")), limit)
        return incidents, sum(counts.get(state, 0) for state in ("open", "acknowledged"))


@contextmanager
def listening_to_people(
    settings: Settings, receivers: Mapping[str, Receiver], store: Store, acted: Callable[[], None], say: Say
) -> Iterator[None]:
    """Take what people do in Slack while the body runs: one connection for each app."""
    tokens = {
        receiver.app_token.reveal(): receiver
        for receiver in settings.receivers
        if isinstance(receiver, SlackSettings) and receiver.app_token is not None and receiver.name in receivers
    }
    sockets = []
    for app_token, receiver in tokens.items():
        from connectors.slack import open_socket  # noqa: PLC0415 - the package is optional

        words, desk = words_of(settings.languages.get(receiver.name, ENGLISH.language)), StoreDesk(store, acted)
        sockets.append(open_socket(revealed(receiver.token), app_token, receiver.base_url, desk, say, words))
    for socket in sockets:
        socket.start()
    try:
        yield
    finally:
        for socket in sockets:
            socket.stop()
