"""Kafka Connect as a source: the states of its connectors and tasks, asked for by its REST API. Imports the model, errors,
codec, secrets, and the modules shared by all that ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from connectors.connect.rest import ConnectAsker, ConnectEndpoint
from connectors.connect.statuses import ConnectInventory
from engine.asking import AskingSource
from engine.codec import made

__all__ = ["ConnectInventory", "check_label", "look", "open_source", "survey"]


def open_source(settings: Mapping[str, Any]) -> AskingSource[ConnectInventory]:
    """Return the source for `settings`, as JSON: `connection` (the fields of a ConnectEndpoint), and the fields of an
    AskingSource except those of its asker. Nothing is asked yet. Spark's workers call this too."""
    endpoint = made(settings["connection"], ConnectEndpoint)
    options = {name: value for name, value in settings.items() if name != "connection"}
    return AskingSource(ConnectAsker(endpoint), f"connect/{urlsplit(endpoint.urls[0]).netloc}", **options)


def look(settings: Mapping[str, Any]) -> ConnectInventory:
    """Ask once, and return what there is. Raises SourceError when nothing answers."""
    inventory, _ = ConnectAsker(made(settings["connection"], ConnectEndpoint)).ask(None, whole=True)
    return inventory


def survey(settings: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """Ask once for everything that an audit judges; return the lines, and sentences about what cannot be seen. Raises
    SourceError when nothing answers."""
    return ConnectAsker(made(settings["connection"], ConnectEndpoint)).audit()


def check_label(template: str) -> str | None:
    """Return an error text for the label `template`; None when it is valid."""
    return "a label of a server that is asked is fixed text" if "{" in template else None
