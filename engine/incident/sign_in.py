"""The commands of a fix as they work at a listener that wants TLS or a login: Kafka's tools take a file with the settings of a
client. Pure.

Rules name the address alone. The file is named only where the lines of an incident, the settings that its process printed, or
the configuration show such a listener; a port shows nothing. Sources: the options of the tools in org.apache.kafka.tools,
kafka.admin and kafka.tools of Kafka 4.0; KIP-1147, which keeps those that it replaces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

import re2
from msgspec.structs import replace

from engine.model.incidents import RenderedStep
from engine.model.placeholders import FILE_OF_COMMANDS
from engine.model.words import frame

_WITH_FILE = frame("{do} (client.properties: security.protocol and the sasl.* or ssl.* settings of a client that may do this)")
_ADDRESSED = re.compile(r"(?:\S*[\\/])?(kafka-[a-z-]+)(?:\.sh|\.bat)? (?:.*? )?--bootstrap-(?:server|controller) \S+")
_OPTIONS = {
    "kafka-console-consumer": "--consumer.config",
    "kafka-console-producer": "--producer.config",
    "kafka-leader-election": "--admin.config",
    "kafka-cluster": "--config",
    "kafka-streams-application-reset": "--config-file",
}
_OPTION = "--command-config"  # of all others
_SECURE = "(?:SASL_SSL|SASL_PLAINTEXT|SSL)"
_SIGNS = re2.compile(
    "|".join(
        (
            rf"(?i:\bsecurity\.(?:inter\.broker\.)?protocol\"?[ '\"]*[=:][ '\"]*{_SECURE}\b)",
            rf"\b{_SECURE}://",
            r"\bsasl_(?:ssl|plaintext)://|\bssl://[^\s/]+:[0-9]+/(?:bootstrap|[0-9]+)\b",  # of librdkafka
            rf"ListenerName\({_SECURE}\)|ListenerName\([\w.-]+\)-{_SECURE}\b|\bsecurityProtocol[=:] ?{_SECURE}\b",
            r"\bSaslAuthenticat|\bSslAuthenticationException\b|\bSASL_AUTHENTICATION_FAILED\b",
            r"\bSASLAuthenticationError\b|kafka server: SASL|\[58\] SASL|\bsasl state: |\bunable to initialize sasl\b",
            r"\bwith SASL mechanism (?:PLAIN|SCRAM|OAUTHBEARER|GSSAPI)",
            r"org\.apache\.kafka\.common\.(?:network\.(?:Sasl|Ssl)|security\.authenticator\.Sasl)",
            r"(?i:\bprincipal ?[=:]? ?)User:(?:[^\sA*,)]|A[^\sN])",  # not ANONYMOUS
            r"\bfailed authentication due to: |\bterminated during authentication\b|\bFailed authentication with /",
            r"\.confluent\.cloud\b|\.servicebus\.windows\.net\b",  # they have no other listeners
        )
    )
)


def is_secured(texts: Iterable[str], settings: Mapping[str, str]) -> bool:
    """Return whether a listener of Kafka that lines speak of wants TLS or a login.

    Args:
        texts: the lines.
        settings: those that the process printed, as in Alert.settings.
    """
    printed = (f"{name.rpartition(' ')[2]} = {value}" for name, value in settings.items())
    return any(_SIGNS.search(text) for text in (*texts, *printed))


def signed_in(steps: Iterable[RenderedStep]) -> tuple[RenderedStep, ...]:
    """Return the steps, in their order, with the file of settings in each command that lacks it; the first such step says what
    stands in the file."""
    done: list[RenderedStep] = []
    is_said = False
    for step in steps:
        run = signed_in_command(step.run)
        if run == step.run:
            done.append(step)
            continue
        says_so = is_said or any(option in step.do for option in (_OPTION, FILE_OF_COMMANDS))
        done.append(replace(step, run=run, do=step.do if says_so else _WITH_FILE.format(do=step.do)))
        is_said = True
    return tuple(done)


def signed_in_command(command: str) -> str:
    """Return a command with the file of settings behind the address; unchanged if it is no tool of Kafka's, asks no server, or
    has a file."""
    match = _ADDRESSED.match(command)
    if match is None:
        return command
    option = _OPTIONS.get(match[1], _OPTION)
    if {option, _OPTION} & set(_words(command)):
        return command
    return f"{match[0]} {option} {FILE_OF_COMMANDS}{command[match.end() :]}"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
