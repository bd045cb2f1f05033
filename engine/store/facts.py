"""The table of facts: what servers stated when they were asked, each until the next fact about the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from uuid import uuid4

from sqlalchemy import Connection, and_, bindparam, delete, func, select

from engine.codec import dumps, loads
from engine.model.incidents import DAWN, EVER
from engine.model.pictures import (
    CONFIRMED,
    EARLIER,
    ClusterPicture,
    KnownPictures,
    StatedFact,
    change_by,
    picture_of,
    with_parts_gone,
)
from engine.store import schema
from engine.store.databases import upsert

FEW = 200  # things that are looked up one by one
MOST_PICTURES = 8
_GONE = ",{}]"  # how the body of a fact without values ends
_VERSION = "version of facts"  # a row of meta

_TABLE = schema.facts
_OF_THING = [_TABLE.c[name] == bindparam(f"of_{name}") for name in ("scope", "kind", "name")]
_LAST = select(_TABLE.c.body).where(*_OF_THING, _TABLE.c.at <= bindparam("until")).order_by(_TABLE.c.at.desc()).limit(1)
_REMOVED = delete(_TABLE).where(*_OF_THING, _TABLE.c.at == bindparam("of_at"))

_Thing = tuple[str, str, str]  # scope, kind, name


class _RecentPictures:
    """The pictures that were used last, MOST_PICTURES of them, by database, scope, version and time; for all threads."""

    def __init__(self) -> None:
        self._pictures: dict[tuple[str, ...], ClusterPicture] = {}
        self._lock = Lock()

    def get(self, key: tuple[str, ...]) -> ClusterPicture | None:
        with self._lock:
            return self._pictures.get(key)

    def put(self, key: tuple[str, ...], picture: ClusterPicture) -> None:
        """Make `picture` the last that was used."""
        with self._lock:
            self._pictures.pop(key, None)
            self._pictures[key] = picture
            while len(self._pictures) > MOST_PICTURES:
                del self._pictures[next(iter(self._pictures))]


_PICTURES = _RecentPictures()


class FactTable:
    """The facts in SQL, through one connection in a transaction of the caller."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, stated: Iterable[StatedFact]) -> Sequence[StatedFact]:
        """Store facts, in order of time; return those that differ from the fact before about the same thing."""
        in_order = with_parts_gone(stated, lambda scope, kind: self._newest(scope, EVER, (kind,)))
        newest = self._newest_of({_thing(fact) for fact in in_order})
        stored: dict[tuple[_Thing, datetime], StatedFact] = {}
        removed: list[StatedFact] = []
        changed: list[StatedFact] = []
        is_confirmation = True
        for fact in in_order:
            before = newest.get(_thing(fact))
            if before is not None and before.at > fact.at:
                before = self._last(_thing(fact), fact.at)  # it comes late
            change = change_by(fact, before)
            if change is None:
                continue
            if change.removed is not None and stored.pop((_thing(fact), change.removed.at), None) is None:
                removed.append(change.removed)
            stored[_thing(fact), change.stored.at] = change.stored
            changed += [fact] if change.is_news else []
            is_confirmation = is_confirmation and change.stored.at != fact.at
            if (latest := newest.get(_thing(fact))) is None or latest.at <= change.stored.at:
                newest[_thing(fact)] = change.stored
        self._write(removed, list(stored.values()))
        if stored and not is_confirmation:
            self._put_version()
        return changed

    def picture(self, scope: str, until: datetime) -> ClusterPicture | None:
        """Return what was stated about `scope` until then; None when nothing was. Building a picture takes long when a cluster
        is large, so the last ones that were used are kept, and valid as long as facts were only confirmed."""
        reached = self._connection.scalar(
            select(func.max(_TABLE.c.at)).where(_TABLE.c.scope == scope, _TABLE.c.at <= schema.text(until))
        )
        if reached is None:
            return None
        key = (str(self._connection.engine.url), scope, self._version(), reached)
        picture = _PICTURES.get(key)
        if picture is None:
            picture = picture_of(self._newest(scope, until))
        if picture is None:
            return None
        _PICTURES.put(key, picture)
        return picture.confirmed_by(self._newest(scope, until, CONFIRMED)).seen_until(until)

    def recent(self, until: datetime) -> Mapping[str, KnownPictures]:
        """Return the pictures of each scope whose servers were asked, by its name, in order: what was pasted is no such one."""
        is_asked = and_(_TABLE.c.kind.in_(CONFIRMED), _TABLE.c.at > schema.text(DAWN))
        asked = select(_TABLE.c.scope).where(is_asked).distinct().order_by(_TABLE.c.scope)
        pictures = {scope: self.picture(scope, until) for scope in self._connection.scalars(asked).all()}
        return {scope: self._with_earlier(scope, last) for scope, last in pictures.items() if last is not None}

    def _with_earlier(self, scope: str, last: ClusterPicture) -> KnownPictures:
        earlier = (self.picture(scope, last.at - span) for span in EARLIER)
        return KnownPictures(last, next((picture for picture in earlier if picture is not None), None))

    def _newest(self, scope: str, until: datetime, kinds: Sequence[str] = ()) -> Sequence[StatedFact]:
        """Return the newest fact about each thing of `scope`, of all or these kinds, that was stated at `until` or before."""
        own = and_(_TABLE.c.scope == scope, _TABLE.c.at <= schema.text(until), *([_TABLE.c.kind.in_(kinds)] if kinds else []))
        last = select(_TABLE.c.kind, _TABLE.c.name, func.max(_TABLE.c.at).label("at")).where(own)
        last_of = last.group_by(_TABLE.c.kind, _TABLE.c.name).subquery()
        same = and_(_TABLE.c.scope == scope, *(_TABLE.c[name] == last_of.c[name] for name in ("kind", "name", "at")))
        return [loads(body, StatedFact) for body in self._connection.scalars(select(_TABLE.c.body).join(last_of, same))]

    def _newest_of(self, things: set[_Thing]) -> dict[_Thing, StatedFact]:
        if len(things) <= FEW:
            facts = [self._last(thing, EVER) for thing in sorted(things)]
            return {_thing(fact): fact for fact in facts if fact is not None}
        scopes = sorted({scope for scope, _, _ in things})
        return {_thing(fact): fact for scope in scopes for fact in self._newest(scope, EVER)}

    def _last(self, thing: _Thing, until: datetime) -> StatedFact | None:
        body = self._connection.scalar(_LAST, {**_columns(thing), "until": schema.text(until)})
        return None if body is None else loads(body, StatedFact)

    def _version(self) -> str:
        """Return the name of what is stored; empty when nothing was."""
        return str(self._connection.scalar(select(schema.meta.c.value).filter_by(name=_VERSION)) or "")

    def _put_version(self) -> None:
        """Give what is stored a name that nothing had before, nor anything in a transaction that was rolled back."""
        rows = [{"name": _VERSION, "value": uuid4().hex}]
        self._connection.execute(upsert(schema.meta, self._connection.dialect.name), rows)

    def _write(self, removed: Sequence[StatedFact], stored: Sequence[StatedFact]) -> None:
        if removed:
            rows = [{**_columns(_thing(fact)), "of_at": schema.text(fact.at)} for fact in removed]
            self._connection.execute(_REMOVED, rows)
        if stored:
            rows = [
                {
                    "scope": fact.scope,
                    "kind": fact.kind,
                    "name": schema.key_of(fact.name),
                    "at": schema.text(fact.at),
                    "body": dumps(fact),
                }
                for fact in stored
            ]
            self._connection.execute(upsert(_TABLE, self._connection.dialect.name), rows)


def prune(connection: Connection, before: str) -> None:
    """Remove the facts that were replaced before the time `before`, as stored, and those of then that something is gone."""
    later = _TABLE.alias()
    same = [later.c[name] == _TABLE.c[name] for name in ("scope", "kind", "name")]
    replaced = select(later.c.at).where(*same, later.c.at > _TABLE.c.at, later.c.at <= before).exists()
    connection.execute(delete(_TABLE).where(_TABLE.c.at < before, replaced))
    connection.execute(delete(_TABLE).where(_TABLE.c.at < before, _TABLE.c.body.endswith(_GONE)))


def _thing(fact: StatedFact) -> _Thing:
    return fact.scope, fact.kind, fact.name


def _columns(thing: _Thing) -> dict[str, str]:
    scope, kind, name = thing
    return {"of_scope": scope, "of_kind": kind, "of_name": schema.key_of(name)}
