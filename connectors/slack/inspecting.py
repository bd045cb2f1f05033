"""Try a Slack app without sending anything: its token, its scopes, and whether it can write to the channel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from http.client import HTTPException
from typing import Any

from msgspec import Struct, ValidationError, convert
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from connectors.slack.answers import NotSlack, from_answer, from_failure
from connectors.slack.scopes import READS, missing_rights
from engine.model.inspections import Inspection, doubt, fault

PAGES = 20  # of 200 channels each
ANYWHERE = "chat:write.public"  # the scope to write to public channels without being a member
_KINDS = {"public": "public_channel", "private": "private_channel"}


class _Team(Struct, frozen=True):
    team: str = ""
    user: str = ""


class _ListedChannel(Struct, frozen=True):
    id: str
    name: str = ""
    is_member: bool = True  # where Slack does not say, nothing is claimed
    is_archived: bool = False
    is_private: bool = False


class _ChannelPage(Struct, frozen=True):
    channels: list[_ListedChannel] = []
    channel: _ListedChannel | None = None
    response_metadata: dict[str, Any] | None = None


def inspected(client: WebClient, channel: str) -> list[Inspection]:
    """Return what was tried of the app behind `client` and of `channel` (`#name`, or an id). Never raises."""
    try:
        return list(_inspected(client, channel))
    except (SlackClientError, NotSlack, OSError, HTTPException, ValueError, ValidationError) as error:
        return [fault(_sentence(error))]


def _inspected(client: WebClient, channel: str) -> Iterator[Inspection]:
    answer = client.auth_test()
    team = convert(answer.data, _Team)
    yield Inspection(f"the token is valid: {team.user or 'the app'} of {team.team or 'the workspace'}")
    scopes = _scopes(answer.headers)
    if scopes is not None:
        for sentence in missing_rights(scopes, channel):
            yield fault(sentence) if "can send nothing" in sentence else doubt(sentence)
    yield _of_channel(client, channel, scopes)


def _of_channel(client: WebClient, channel: str, scopes: frozenset[str] | None) -> Inspection:
    if channel.startswith("#"):
        return _of_name(client, channel, scopes)
    try:
        page = convert(client.conversations_info(channel=channel).data, _ChannelPage)
    except SlackApiError as error:
        if _word(error) in ("missing_scope", "unknown_method"):
            return doubt(f"the channel {channel} could not be looked up ({_word(error)})")
        return fault(f"the channel {channel}: {_sentence(error)}")
    return _state(channel, page.channel, scopes) if page.channel is not None else doubt(f"Slack does not show {channel}")


def _of_name(client: WebClient, channel: str, scopes: frozenset[str] | None) -> Inspection:
    names: list[str] = []
    unlisted: list[str] = []  # the scopes without which kinds of channels cannot be listed
    for kind, type_ in _KINDS.items():
        try:
            listed = _listed(client, type_)
        except SlackApiError as error:
            if _word(error) != "missing_scope":
                raise
            unlisted.append(READS[kind][0])
            continue
        for entry in listed:
            if entry.name == channel.removeprefix("#"):
                return _state(channel, entry, scopes)
        names += [entry.name for entry in listed]
    if scopes is not None:
        unlisted += [find for find, _ in READS.values() if find not in scopes and find not in unlisted]
    near = get_close_matches(channel.removeprefix("#"), names, n=1)
    hint = f"; did you mean #{near[0]}?" if near else ""
    if unlisted:
        return doubt(
            f"the channel {channel} was not found; without the scope {' and '.join(unlisted)} not all are listed{hint}"
        )
    return fault(f"there is no channel {channel} that the app can see{hint or '; invite it if the channel is private'}")


def _listed(client: WebClient, type_: str) -> Sequence[_ListedChannel]:
    channels: list[_ListedChannel] = []
    cursor = ""
    for _ in range(PAGES):
        more = {"cursor": cursor} if cursor else {}
        page = convert(client.conversations_list(types=type_, exclude_archived=False, limit=200, **more).data, _ChannelPage)
        channels += page.channels
        cursor = str((page.response_metadata or {}).get("next_cursor") or "")
        if not cursor:
            break
    return channels


def _state(channel: str, entry: _ListedChannel, scopes: frozenset[str] | None) -> Inspection:
    if entry.is_archived:
        return fault(f"the channel {channel} is archived")
    if not entry.is_member and (entry.is_private or ANYWHERE not in (scopes or ())):
        return fault(f"the app is not in the channel {channel}: invite it there")
    return Inspection(f"the channel {channel} is there, and the app may write to it")


def _scopes(headers: Mapping[str, Any]) -> frozenset[str] | None:
    granted = next((str(value) for name, value in headers.items() if name.lower() == "x-oauth-scopes"), None)
    return None if granted is None else frozenset(scope.strip() for scope in granted.split(","))


def _word(error: SlackApiError) -> str:
    data = error.response.data if hasattr(error.response, "data") else error.response
    return str(data.get("error") or "") if isinstance(data, dict) else ""


def _sentence(error: Exception) -> str:
    if isinstance(error, SlackApiError):
        return from_answer(error.response.status_code, _word(error), error.response.headers).why
    return str(error) if isinstance(error, NotSlack) else from_failure(error).why
