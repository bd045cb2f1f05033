"""How clients and platforms write the settings of Kafka: Spring's properties, a container's variables, librdkafka's names."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

VALUE = "{value}"  # the place of a setting's value in a spelling such as `session_timeout={value}ms`


class Dialect(Struct, frozen=True):
    """How one client or platform writes settings.

    An event is of this dialect if one of the RE2 expressions `lines` matches in its text, or one of `labels` (name ->
    expression) in that label; of several dialects, that with the lowest `rank`. `spellings` is level of a step -> Kafka's name
    of a setting -> the name here, or name and value (NAME=TEXT with VALUE); names that are equal here are left out. `absent` is
    level -> Kafka's name -> what to know instead, for settings that do not exist here. `where` is the level of a client's
    settings here; empty: client.
    """

    name: str
    label: str
    rank: int = 100
    lines: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    absent: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    where: str = ""

    @property
    def levels(self) -> frozenset[str]:
        """The levels of steps whose settings it writes in its own way."""
        return frozenset((*self.spellings, *self.absent))
