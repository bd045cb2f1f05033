"""A condition as a function is true exactly where its tree evaluates to True."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.match.conditions import condition_of
from engine.model.expressions import Binary, Expression, Literal, NameExpression, Unary, evaluate

ITEMS = frozenset(("refused", "again", "node"))
CAPTURES = ("node", "size", "missing")
LEAVES = st.sampled_from([*map(NameExpression, (*sorted(ITEMS), *CAPTURES)), Literal(0), Literal(3), Literal("x")])


def branches(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    either = st.builds(Binary, st.sampled_from(["and", "or", "and", "or", "<", "==", "+"]), inner, inner)
    return either | st.builds(Unary, st.sampled_from(["not", "-"]), inner)


@given(
    st.recursive(LEAVES, branches, max_leaves=12),
    st.frozensets(st.sampled_from(sorted(ITEMS))),
    st.dictionaries(st.sampled_from(CAPTURES[:2]), st.sampled_from([0, 1, 3, "", "x"])),
)
def test_it_is_true_where_the_tree_is(expression: Expression, held: frozenset[str], captures: dict[str, Any]) -> None:
    environment = {**captures, **{name: name in held for name in ITEMS}}
    assert condition_of(expression, ITEMS)(held, captures) is (evaluate(expression, environment) is True)
