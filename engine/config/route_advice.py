"""Advice on the `route` of tocsin.yml: matchers that match nothing, routes that are never reached, `continue` without effect.

Works on the document, whatever is wrong in it: a route with an unreadable matcher is left out of all comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from engine.config.vocabulary import RoutingVocabulary
from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, TextNode
from engine.dsl.report import Report, did_you_mean
from engine.model.routes import LabelMatcher
from engine.route import MatcherError, covers, excludes_all, holds, parse_matcher, words_of

Matchers = tuple[LabelMatcher, ...]
NO_VOCABULARY = RoutingVocabulary(frozenset(), {}, {})


class WrittenRoute(Struct, frozen=True):
    """A route as it is written. `matchers` None: at least one of them cannot be read."""

    node: MapNode
    matchers: Matchers | None
    matcher_nodes: tuple[TextNode, ...]
    goes_on: bool
    branches: tuple[WrittenRoute, ...]

    @property
    def name(self) -> str:
        """The matchers as text, for sentences."""
        return " ".join(f"`{matcher}`" for matcher in self.matchers or ()) or "everything"


def advise_routes(root: Node | None, vocabulary: RoutingVocabulary | None, report: Report) -> None:
    """Report advice on the tree at `root`, the value of `route`. Without a `vocabulary` matchers are compared only with each
    other."""
    tree = _written(root)
    if tree is None:
        return
    if vocabulary is not None:
        for route in _all(tree):
            _advise_matchers(route, vocabulary, report)
    _advise_branches(tree, (), (), vocabulary or NO_VOCABULARY, report)


def _written(node: Node | None) -> WrittenRoute | None:
    if not isinstance(node, MapNode):
        return None
    nodes = tuple(item for item in _items(node.get("matchers")) if isinstance(item, TextNode))
    flag = node.get("continue")
    branches = tuple(route for item in _items(node.get("routes")) if (route := _written(item)) is not None)
    goes_on = isinstance(flag, TextNode) and flag.value == "true"
    return WrittenRoute(node, _parsed(nodes), nodes, goes_on, branches)


def _items(node: Node | None) -> Sequence[Node]:
    return node.items if isinstance(node, ListNode) else ()


def _parsed(nodes: Iterable[TextNode]) -> Matchers | None:
    try:
        return tuple(parse_matcher(node.value) for node in nodes)
    except MatcherError:
        return None


def _all(route: WrittenRoute) -> Iterator[WrittenRoute]:
    yield route
    for branch in route.branches:
        yield from _all(branch)


def _advise_matchers(route: WrittenRoute, vocabulary: RoutingVocabulary, report: Report) -> None:
    for node in route.matcher_nodes:
        try:
            matcher = parse_matcher(node.value)
        except MatcherError:
            continue
        if matcher.label not in vocabulary.labels:
            help = did_you_mean(matcher.label, vocabulary.labels, "`tocsin rules list` and `labels` of sources have the labels")
            report.add(Code.UNKNOWN_LABEL, node, f"no incident has a label `{matcher.label}`", help)
        elif (domain := vocabulary.values.get(matcher.label)) is not None:
            _advise_values(matcher, node, domain, vocabulary, report)


def _advise_values(
    matcher: LabelMatcher, node: TextNode, domain: frozenset[str], vocabulary: RoutingVocabulary, report: Report
) -> None:
    words = words_of(matcher)
    for word in words:
        if word in domain:
            continue
        if matcher.label == "rule" and word in vocabulary.renamed:
            sentence = f"the rule `{word}` has another id now"
            report.add(Code.UNKNOWN_VALUE, node, sentence, f"write `{vocabulary.renamed[word]}`")
            continue
        help = did_you_mean(word, domain - {""}, "`tocsin rules list` has all ids" if matcher.label == "rule" else "")
        report.add(Code.UNKNOWN_VALUE, node, f"no incident has `{matcher.label}` with the value `{word}`", help)
    if not words and matcher.op == "=~" and not any(holds((matcher,), {matcher.label: value}) for value in domain):
        report.add(Code.UNKNOWN_VALUE, node, f"no value of `{matcher.label}` matches `{matcher.value}`")


def _advise_branches(
    route: WrittenRoute, above: Matchers, taken: Sequence[WrittenRoute], vocabulary: RoutingVocabulary, report: Report
) -> None:
    """Report on the branches of `route`.

    Args:
        above: the matchers of `route` and of the routes above it, all of which hold.
        taken: the routes that are asked before `route` and end the search where they hold.
    """
    ends, domains = list(taken), vocabulary.values
    for index, branch in enumerate(route.branches):
        if branch.matchers is None:
            continue
        effective = (*above, *branch.matchers)
        if excludes_all(effective, domains):
            if not _has_unknown_value(branch.matchers, vocabulary):  # reported as such
                sentence = "never reached: its matchers exclude each other or those of the routes above"
                report.add(Code.UNREACHED_ROUTE, branch.node, sentence, "leave one of them out")
            continue
        hiding = next((end for end in ends if end.matchers is not None and covers(end.matchers, effective, domains)), None)
        if hiding is not None:
            sentence = f"never reached: the route for {hiding.name} in line {hiding.node.mark.line} takes all of it before"
            help = "put this route before that one, or write `continue: true` there"
            report.add(Code.UNREACHED_ROUTE, branch.node, sentence, help)
            continue
        later = [other for other in route.branches[index + 1 :] if not _is_apart(other, effective, vocabulary)]
        if branch.goes_on and not later:
            sentence = "`continue` has no effect: no later route beside this one can hold too"
            report.add(Code.IDLE_CONTINUE, branch.node.key("continue") or branch.node, sentence, "leave it out")
        _advise_branches(branch, effective, ends, vocabulary, report)
        if not branch.goes_on:
            ends.append(branch)


def _is_apart(other: WrittenRoute, effective: Matchers, vocabulary: RoutingVocabulary) -> bool:
    return other.matchers is not None and excludes_all((*effective, *other.matchers), vocabulary.values)


def _has_unknown_value(matchers: Matchers, vocabulary: RoutingVocabulary) -> bool:
    return any(excludes_all((matcher,), vocabulary.values) for matcher in matchers)
