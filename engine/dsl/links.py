"""Checks of rules among each other: do the ids exist, is the explaining free of circles, can keys be filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.report import did_you_mean
from engine.dsl.world import World, entity_of

_OF: Loc = ("correlation", "of")


def check_links(world: World) -> None:
    """Report everything that is wrong between the rules of `world`, each finding to the rule that says it."""
    for draft in world.drafts.values():
        _check_ids(draft, world)
        if draft.file.replaces:
            _check_replaced(draft, world)
        _check_entity(draft, world)
        _check_explains(draft, world)
    for chain in cycles({draft.id: _explained(draft) for draft in world.drafts.values()}):
        draft = world.drafts[chain[0]]
        message = f"these rules explain each other in a circle: {' -> '.join((*chain, chain[0]))}"
        draft.report.add(Code.EXPLAINS_CYCLE, draft.document.key(["explains"]), message, "decide which of them is the cause")
    for chain in cycles({draft.id: counted_by(draft) for draft in world.drafts.values()}):
        draft = world.drafts[chain[0]]
        message = f"these correlations count each other in a circle: {' -> '.join((*chain, chain[0]))}"
        draft.report.add(Code.COUNTS_CYCLE, draft.document.key(["correlation"]), message, "let one of them count signatures")


def cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield each circle of `graph` that a walk in order of names closes, starting at its first name; every knot has one."""
    done: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        waiting = [(start, iter(sorted(graph[start])))] if start not in done else []
        path.extend(name for name, _ in waiting)
        while waiting:
            name, rest = waiting[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                waiting.pop()
                path.pop()
            elif following in path:
                yield _from_smallest(path[path.index(following) :])
            elif following in graph and following not in done:
                path.append(following)
                waiting.append((following, iter(sorted(graph[following]))))


def _from_smallest(chain: list[str]) -> tuple[str, ...]:
    first = chain.index(min(chain))
    return (*chain[first:], *chain[:first])


def _explained(draft: Draft) -> list[str]:
    return [rule for entry in draft.file.explains for rule in entry.rules]


def counted_by(draft: Draft) -> list[str]:
    """Return every rule that a correlation is told of."""
    if draft.file.correlation is None:
        return []
    return [id_ for loc, id_ in needed(draft) if loc[0] in ("correlation", "clear") and loc != _OF]


def _check_replaced(draft: Draft, world: World) -> None:
    """Report an id that is replaced and still there, or replaced twice."""
    claimed = [id_ for other in world.drafts.values() if other is not draft for id_ in (other.id, *other.file.replaces)]
    for loc, id_ in _listed(["replaces"], draft.file.replaces):
        if id_ in claimed or id_ == draft.id:
            message = f"`{id_}` is the id of a rule, or replaced by another one"
            draft.report.add(
                Code.DUPLICATE_ID, draft.document.find(loc), message, "an id is replaced once, and is no rule any more"
            )


def _check_ids(draft: Draft, world: World) -> None:
    for loc, id_ in (*needed(draft), *_listed(["related"], draft.file.related)):
        either = loc == _OF  # a component or a rule
        known = world.outlines.keys() | world.components.keys() if either else world.outlines.keys()
        if id_ not in known:
            _unknown(draft, loc, id_, known, "component or rule" if either else "rule")
    for loc, name in _listed(["speaker"], draft.file.speaker):
        if name not in world.components:
            _unknown(draft, loc, name, world.components.keys(), "component")
    _check_signatures(draft, world)


def _check_signatures(draft: Draft, world: World) -> None:
    """Report correlations where only lines can stand: an alert may still move, and what has answered cannot be taken back."""
    given = draft.file.correlation
    named: list[tuple[Loc, str]] = [(_OF, given.of)] if given and given.of else []
    named += _listed(["correlation", "expect"], given.expect if given else ())
    for loc, id_ in named:
        found = world.outlines.get(id_)
        if found is not None and found.counts:
            message = f"`{id_}` is a correlation, and only lines can be expected"
            draft.report.add(Code.CORRELATION_SHAPE, draft.document.find(loc), message, "name a rule with a detection")


def _unknown(draft: Draft, loc: Loc, id_: str, known: Iterable[str], what: str) -> None:
    help_line = did_you_mean(id_, known, "list what there is with `tocsin rules list`")
    draft.report.add(Code.UNKNOWN_RULE, draft.document.find(loc), f"there is no {what} `{id_}`", help_line)


def needed(draft: Draft) -> Iterator[tuple[Loc, str]]:
    """Yield every place where a rule depends on another one (`of`: or on a component), and that one's id."""
    file = draft.file
    for index, entry in enumerate(file.explains):
        yield from _listed(["explains", index, "rules"], entry.rules)
    for index, stage in enumerate(file.continues):
        yield ["continues", index, "rule"], stage.rule
    for index, told in enumerate(file.told_as):
        yield ["told_as", index, "rule"], told.rule
    yield from _listed(["clear", "rules"], file.clear.rules if file.clear else ())
    given = file.correlation
    if given is None:
        return
    for key, ids in (("rules", given.rules), ("open", given.open), ("expect", given.expect)):
        yield from _listed(["correlation", key], ids)
    if given.of:
        yield _OF, given.of
    if given.sooner:
        yield from _listed(["correlation", "sooner", "rules"], given.sooner.rules)
        yield from _listed(["correlation", "sooner", "back"], given.sooner.back)
    yield from _listed(["correlation", "unless", "rules"], given.unless.rules if given.unless else ())
    yield from _listed(["correlation", "after", "rules"], given.after.rules if given.after else ())


def _listed(loc: list[str | int], ids: Iterable[str]) -> Iterator[tuple[Loc, str]]:
    return (([*loc, index], id_) for index, id_ in enumerate(ids))


def _check_entity(draft: Draft, world: World) -> None:
    given = draft.file.correlation
    base = ["correlation", "group-by"] if given else ["entity"]
    for label, source in entity_of(draft).items():
        if draft.document.root.get(base[0]) is not None:
            _check_key(draft, source, [*base, label], world, world.captures(draft.id))
    for name in draft.file.distinct:
        if name not in draft.detection.captures:
            help_line = did_you_mean(name, draft.detection.captures)
            draft.report.add(Code.UNKNOWN_ENTITY, draft.document.find(["distinct"]), f"`{name}` is no capture", help_line)


def _check_key(draft: Draft, name: str, loc: Loc, world: World, captures: Mapping[str, str]) -> None:
    known = {*captures, *world.labels, *draft.file.labels}
    if name not in known:
        message = f"`{name}` is neither a capture nor a known label"
        draft.report.add(Code.UNKNOWN_ENTITY, draft.document.find(loc), message, did_you_mean(name, known))


def _check_explains(draft: Draft, world: World) -> None:
    explains, continues = draft.file.explains, draft.file.continues
    for index, entry in enumerate(explains if draft.document.whole(["explains"], explains) else ()):
        loc: Loc = ["explains", index, "by"]
        if not entry.scope_wide and set(entry.by) <= {"cluster"}:
            help_line = "join on one more key, such as broker or topic; or say scope_wide: true"
            draft.report.add(Code.EXPLAINS_WITHOUT_KEY, draft.document.find(loc), "only the cluster joins the two", help_line)
        _check_join(draft, entry.by, entry.rules, loc, world)
    for index, stage in enumerate(continues if draft.document.whole(["continues"], continues) else ()):
        _check_join(draft, stage.by, [stage.rule], ["continues", index, "by"], world)


def _check_join(draft: Draft, by: Mapping[str, str], others: Iterable[str], loc: Loc, world: World) -> None:
    """Check that each key of `by` is known to this rule, and its counterpart to every rule that it joins with."""
    own = {*world.captures(draft.id), *entity_of(draft)}
    for mine, theirs in by.items():
        _check_key(draft, mine, [*loc, mine], world, dict.fromkeys(own, ""))
        for other in others:
            if (found := world.outlines.get(other)) is not None:
                known = {*world.captures(other), *found.entity}
                _check_key(draft, theirs, [*loc, mine], world, dict.fromkeys(known, ""))
