"""How clients and platforms write the settings of Kafka: Spring's properties, a container's variables, librdkafka's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct, field

ANY_CLIENT = "client"  # level of settings that several kinds of client have
VALUE = "{value}"  # the place of a setting's value in a spelling such as `session_timeout={value}ms`
# hole of a template -> Kafka's name of a setting in that form
FORMS: Mapping[str, Callable[[str], str]] = {
    "name": lambda name: name,
    # the variables of the images of Apache Kafka and Confluent
    "NAME": lambda name: name.replace("_", "__").replace("-", "___").replace(".", "_").upper(),
    "snake": lambda name: name.replace(".", "_").replace("-", "_"),
}
_FORM = re.compile(rf"\{{({'|'.join(FORMS)})\}}")


class Dialect(Struct, frozen=True):
    """How one client or platform writes settings.

    An event is of this dialect if one of the RE2 expressions `lines` matches in its text, or one of `labels` (name ->
    expression) in that label; of several dialects, the first by `rank`. `places` are the levels of steps that it is about;
    `spells` is level of a setting -> template, `names` Kafka's name -> the name here, or name and value (NAME=TEXT with VALUE),
    `absent` Kafka's name -> what to know instead of a setting that does not exist here. `where` is the level of a client's
    settings here; empty: client. `commands` is RE2 expression -> the text that takes the place of its match in a command,
    `absent_commands` expression -> what to know instead of a command that it matches in, which does not work here.
    """

    name: str
    label: str
    rank: int = 100
    lines: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    spells: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    absent_commands: Mapping[str, str] = field(default_factory=dict)

    def spelling(self, name: str, level: str) -> str:
        """Return how Kafka's setting `name` of `level` is written; equal to `name` where the dialect has no other spelling."""
        template = self.spells.get(level, "{name}")
        return self.names.get(name) or _FORM.sub(lambda form: FORMS[form[1]](name), template)
