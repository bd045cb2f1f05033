"""Which classes are missing among some jars, and sources that stand for them: for servers that need an unpublished library.

Source: the Java Virtual Machine Specification, chapter 4 (class file format).
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_UTF8, _CLASS, _METHOD, _MODULES = 1, 7, 10, "META-INF/"
# tag of a constant: how many bytes follow it
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_WIDE = (5, 6)  # those that take two places

Constant = tuple[int, bytes]  # tag and what follows it


def missing(jars: Iterable[Path], prefixes: tuple[str, ...]) -> Mapping[str, bool]:
    """Return the classes below `prefixes` that some jars name and none of them has: whether each must be a class, for it is
    extended or made; others may be interfaces."""
    names, needed = set[str](), dict[str, bool]()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class") and not entry.startswith(_MODULES):
                    names.add(entry.removesuffix(".class"))
                    for name, is_class in _named(archive.read(entry)):
                        if name.startswith(prefixes):
                            needed[name] = needed.get(name, False) or is_class
    return {name: is_class for name, is_class in needed.items() if name not in names}


def write_stubs(classes: Mapping[str, bool], folder: Path) -> None:
    """Write an empty source for each of `classes`."""
    for name, is_class in classes.items():
        package, _, simple = name.rpartition("/")
        is_error = simple.endswith("Exception")
        kind = "class" if is_class or is_error else "interface"
        text = f"package {package.replace('/', '.')};\npublic {kind} {simple}{' extends Exception' if is_error else ''} {{}}\n"
        (folder / package).mkdir(parents=True, exist_ok=True)
        (folder / package / f"{simple}.java").write_text(text)


def _named(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the classes that a class file names; True where it extends one, or calls a method of it as of a class."""
    constants, end = _constants(data)

    def class_name(number: int) -> str:
        (text,) = struct.unpack(">H", constants[number][1])
        return constants[text][1].decode("utf-8", "replace").lstrip("[").removeprefix("L").removesuffix(";")

    for number, (tag, content) in constants.items():
        if tag == _CLASS:
            yield class_name(number), False
        elif tag == _METHOD:
            yield class_name(struct.unpack(">H", content[:2])[0]), True
    (extended,) = struct.unpack(">H", data[end + 4 : end + 6])
    if extended:
        yield class_name(extended), True


def _constants(data: bytes) -> tuple[Mapping[int, Constant], int]:
    """Return the constants of a class file by number, and where they end."""
    (count,) = struct.unpack(">H", data[8:10])
    constants, at, number = dict[int, Constant](), 10, 1
    while number < count:
        tag = data[at]
        begin = at + 3 if tag == _UTF8 else at + 1
        size = struct.unpack(">H", data[at + 1 : at + 3])[0] if tag == _UTF8 else _SIZES[tag]
        constants[number] = tag, data[begin : begin + size]
        at, number = begin + size, number + (2 if tag in _WIDE else 1)
    return constants, at
