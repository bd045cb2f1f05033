"""The scopes of the Slack app, and what it cannot do without them (docs/slack-app.yml is the manifest that asks for all)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

POST, COMMANDS, FILES = "chat:write", "commands", "files:write"
CONNECT = "connections:write"  # of the app's own token
READS = {
    "public": ("channels:read", "channels:history"),
    "private": ("groups:read", "groups:history"),
}  # by kind of channel: to find its id by its name, and to search its messages
SCOPES = (POST, *(scope for scopes in READS.values() for scope in scopes), COMMANDS, FILES)


def missing_rights(
    granted: Collection[str], channel: str, *, has_buttons: bool = False, has_pictures: bool = False
) -> Iterator[str]:
    """Yield a sentence for each thing that the app cannot do in `channel` (`#name`, or an id) with the scopes `granted`; with
    `has_buttons` it also takes what people do there, with `has_pictures` it uploads pictures."""
    if POST not in granted:
        yield f"the app has no scope {POST}: it can send nothing"
    for kind, (find, search) in READS.items():
        missing = [scope for scope in (find, search) if scope not in granted and (scope == search or channel.startswith("#"))]
        if missing:
            scopes = f"no scope {missing[0]}" if len(missing) == 1 else f"neither scope {' nor '.join(missing)}"
            yield f"the app has {scopes}: in a {kind} channel a message whose answer was lost is posted twice"
    if has_buttons and COMMANDS not in granted:
        yield f"the app has no scope {COMMANDS}: there is no /tocsin in Slack"
    if has_pictures and FILES not in granted:
        yield f"the app has no scope {FILES}: there are no pictures in the threads"
