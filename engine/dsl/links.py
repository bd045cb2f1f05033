"""Check references between rules: ids exist, `explains` and counting have no circles, keys can have values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.report import did_you_mean
from engine.dsl.symbols import SymbolTable, entity_of

_OF: Loc = ("correlation", "of")


def check_links(symbols: SymbolTable) -> None:
    """Report every wrong reference between the rules of `symbols`, to the report of the rule that holds the reference."""
    for draft in symbols.drafts.values():
        _check_ids(draft, symbols)
        if draft.file.replaces:
            _check_replaced(draft, symbols)
        _check_entity(draft, symbols)
        _check_explains(draft, symbols)
    for chain in cycles({draft.id: _explained(draft) for draft in symbols.drafts.values()}):
        draft = symbols.drafts[chain[0]]
        message = f"these rules explain each other in a circle: {' -> '.join((*chain, chain[0]))}"
        draft.report.add(Code.EXPLAINS_CYCLE, draft.document.key(["explains"]), message, "decide which of them is the cause")
    for chain in cycles({draft.id: input_rules(draft) for draft in symbols.drafts.values()}):
        draft = symbols.drafts[chain[0]]
        message = f"these correlations count each other in a circle: {' -> '.join((*chain, chain[0]))}"
        draft.report.add(Code.COUNTS_CYCLE, draft.document.key(["correlation"]), message, "let one of them count signatures")


def cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the circles that a depth-first walk of `graph`, in order of names, closes; each begins at its smallest name.

    Yields at least one circle of every strongly connected part, not all of them.
    """
    done: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        stack = [(start, iter(sorted(graph[start])))] if start not in done else []
        path.extend(name for name, _ in stack)
        while stack:
            name, rest = stack[-1]
            successor = next(rest, None)
            if successor is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif successor in path:
                yield _from_smallest(path[path.index(successor) :])
            elif successor in graph and successor not in done:
                path.append(successor)
                stack.append((successor, iter(sorted(graph[successor]))))


def _from_smallest(chain: list[str]) -> tuple[str, ...]:
    first = chain.index(min(chain))
    return (*chain[first:], *chain[:first])


def _explained(draft: Draft) -> list[str]:
    return [rule for entry in draft.file.explains for rule in entry.rules]


def input_rules(draft: Draft) -> list[str]:
    """Return the ids of the rules whose matches or alerts are input to the correlation; empty for a detection."""
    if draft.file.correlation is None:
        return []
    return [id_ for loc, id_ in dependencies(draft) if loc[0] in ("correlation", "clear") and loc != _OF]


def _check_replaced(draft: Draft, symbols: SymbolTable) -> None:
    """Report an id in `replaces` that still is the id of a rule, or that two rules replace."""
    other_ids = [id_ for other in symbols.drafts.values() if other is not draft for id_ in (other.id, *other.file.replaces)]
    for loc, id_ in _with_locs(["replaces"], draft.file.replaces):
        if id_ in other_ids or id_ == draft.id:
            message = f"`{id_}` is still the id of a rule, or another rule replaces it too"
            help_line = "remove the old rule, and let one rule replace its id"
            draft.report.add(Code.DUPLICATE_ID, draft.document.find(loc), message, help_line)


def _check_ids(draft: Draft, symbols: SymbolTable) -> None:
    for loc, id_ in (*dependencies(draft), *_with_locs(["related"], draft.file.related)):
        is_of = loc == _OF  # names a component or a rule
        ids = symbols.outlines.keys() | symbols.components.keys() if is_of else symbols.outlines.keys()
        if id_ not in ids:
            _report_unknown_id(draft, loc, id_, ids, "component or rule" if is_of else "rule")
    states = {state for component in symbols.components.values() for state in component.states}
    for loc, state in _with_locs(["not_during"], draft.file.not_during):
        if state not in states:
            help_line = did_you_mean(state, states, "declare it in `states` of a component")
            draft.report.add(Code.UNKNOWN_RULE, draft.document.find(loc), f"there is no state `{state}`", help_line)
    for loc, name in _with_locs(["speaker"], draft.file.speaker):
        if name not in symbols.components:
            _report_unknown_id(draft, loc, name, symbols.components.keys(), "component")
    _check_signatures(draft, symbols)


def _check_signatures(draft: Draft, symbols: SymbolTable) -> None:
    """Report correlations in `of` and `expect`, which need rules over single events: an alert may change later, and a pair
    or a heartbeat that it has completed cannot be reopened."""
    correlation = draft.file.correlation
    expected: list[tuple[Loc, str]] = [(_OF, correlation.of)] if correlation and correlation.of else []
    expected += _with_locs(["correlation", "expect"], correlation.expect if correlation else ())
    for loc, id_ in expected:
        outline = symbols.outlines.get(id_)
        if outline is not None and outline.counts:
            message = f"`{id_}` is a correlation, and only a rule over single events can be expected"
            draft.report.add(Code.CORRELATION_SHAPE, draft.document.find(loc), message, "name a rule with a detection")


def _report_unknown_id(draft: Draft, loc: Loc, id_: str, ids: Iterable[str], kind: str) -> None:
    help_line = did_you_mean(id_, ids, "`tocsin rules list` lists the rules")
    draft.report.add(Code.UNKNOWN_RULE, draft.document.find(loc), f"there is no {kind} `{id_}`", help_line)


def dependencies(draft: Draft) -> Iterator[tuple[Loc, str]]:
    """Yield (place, id) of every reference to a rule that `draft` depends on; the id in `of` may be a component's."""
    file = draft.file
    for index, entry in enumerate(file.explains):
        yield from _with_locs(["explains", index, "rules"], entry.rules)
    for index, stage in enumerate(file.continues):
        yield ["continues", index, "rule"], stage.rule
    for index, stand_in in enumerate(file.told_as):
        yield ["told_as", index, "rule"], stand_in.rule
    for key in ("rules", "unless", "back") if file.clear else ():
        yield from _with_locs(["clear", key], getattr(file.clear, key))
    correlation = file.correlation
    if correlation is None:
        return
    for key, ids in (("rules", correlation.rules), ("open", correlation.open), ("expect", correlation.expect)):
        yield from _with_locs(["correlation", key], ids)
    if correlation.of:
        yield _OF, correlation.of
    if correlation.sooner:
        yield from _with_locs(["correlation", "sooner", "rules"], correlation.sooner.rules)
        yield from _with_locs(["correlation", "sooner", "back"], correlation.sooner.back)
    yield from _with_locs(["correlation", "unless", "rules"], correlation.unless.rules if correlation.unless else ())
    yield from _with_locs(["correlation", "after", "rules"], correlation.after.rules if correlation.after else ())


def _with_locs(loc: list[str | int], ids: Iterable[str]) -> Iterator[tuple[Loc, str]]:
    return (([*loc, index], id_) for index, id_ in enumerate(ids))


def _check_entity(draft: Draft, symbols: SymbolTable) -> None:
    correlation = draft.file.correlation
    base = ["correlation", "group-by"] if correlation else ["entity"]
    for label, source in entity_of(draft).items():
        if draft.document.root.get(base[0]) is not None:
            _check_key(draft, source, [*base, label], symbols, symbols.captures(draft.id))
    for name in draft.file.distinct:
        if name not in draft.detection.captures:
            help_line = did_you_mean(name, draft.detection.captures)
            draft.report.add(Code.UNKNOWN_ENTITY, draft.document.find(["distinct"]), f"`{name}` is no capture", help_line)


def _check_key(draft: Draft, name: str, loc: Loc, symbols: SymbolTable, captures: Mapping[str, str]) -> None:
    names = {*captures, *symbols.labels, *draft.file.labels}
    if name not in names:
        message = f"`{name}` is neither a capture nor a known label"
        draft.report.add(Code.UNKNOWN_ENTITY, draft.document.find(loc), message, did_you_mean(name, names))


def _check_explains(draft: Draft, symbols: SymbolTable) -> None:
    explains, continues = draft.file.explains, draft.file.continues
    for index, entry in enumerate(explains if draft.document.whole(["explains"], explains) else ()):
        loc: Loc = ["explains", index, "by"]
        if not entry.scope_wide and set(entry.by) <= {"cluster"}:
            help_line = "join on one more key, such as broker or topic; or say scope_wide: true"
            draft.report.add(Code.EXPLAINS_WITHOUT_KEY, draft.document.find(loc), "only the cluster joins the two", help_line)
        _check_join(draft, entry.by, entry.rules, loc, symbols)
    for index, stage in enumerate(continues if draft.document.whole(["continues"], continues) else ()):
        _check_join(draft, stage.by, [stage.rule], ["continues", index, "by"], symbols)


def _check_join(draft: Draft, by: Mapping[str, str], others: Iterable[str], loc: Loc, symbols: SymbolTable) -> None:
    """Report keys of `by` that this rule does not have, or whose counterpart a joined rule does not have."""
    own_names = {*symbols.captures(draft.id), *entity_of(draft)}
    for own_key, other_key in by.items():
        _check_key(draft, own_key, [*loc, own_key], symbols, dict.fromkeys(own_names, ""))
        for other in others:
            if (outline := symbols.outlines.get(other)) is not None:
                names = {*symbols.captures(other), *outline.entity}
                _check_key(draft, other_key, [*loc, own_key], symbols, dict.fromkeys(names, ""))
