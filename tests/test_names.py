"""Every type has a name of its own: a reader who meets one knows which is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_type_name_is_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted([*ROOT.glob("engine/**/*.py"), *ROOT.glob("connectors/**/*.py")]):
        place = path.relative_to(ROOT).as_posix()
        for name in _types(ast.parse(path.read_text(encoding="utf-8"))):
            places[name.lstrip("_")].append(place)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def _types(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the classes and of the aliases of a module, without type variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(target := node.targets[0], ast.Name)
            and _is_alias(target.id, node.value)
        ):
            yield target.id


def _is_alias(name: str, value: ast.expr) -> bool:
    bare = name.lstrip("_")
    is_variable = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"
    return bare[:1].isupper() and not bare.isupper() and not is_variable
