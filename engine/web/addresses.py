"""The addresses by which pages link to each other: paths of a server, or relative paths of files in one folder."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct


class Addresses(Struct, frozen=True):
    """The addresses of pages, as links on one of them.

    Attributes:
        files: the pages are files of a folder, and the links are relative.
        root: the relative path from the page to that folder, empty or ending with a slash.
        single: there is only one page, a file.
    """

    files: bool = False
    root: str = ""
    single: bool = False

    @property
    def home(self) -> str:
        """The address of the list of incidents."""
        return f"{self.root}index.html" if self.files else "/"

    def incident(self, id: str) -> str:
        """Return the address of an incident's page."""
        return f"{self.root}{quote(page_file(id))}" if self.files else f"/incidents/{quote(id, '')}"

    def acts(self, id: str) -> str:
        """Return the address that acts on an incident are posted to; a server has it, files do not."""
        return f"/incidents/{quote(id, '')}/acts"

    def around(self, id: str, line: int) -> str:
        """Return the address of the lines around a line of evidence, counted from 1; a server has it, files do not."""
        return f"/incidents/{quote(id, '')}/lines/{line}"

    def json(self, id: str) -> str:
        """Return the address of an incident as JSON."""
        return f"{self.root}{quote(json_file(id))}" if self.files else f"/incidents/{quote(id, '')}.json"


SERVED = Addresses()


def page_file(id: str) -> str:
    """Return the path of an incident's page in the folder; the id is quoted, so that the path cannot leave the folder."""
    return f"incidents/{_name(id)}.html"


def json_file(id: str) -> str:
    """Return the path of an incident as JSON in the folder."""
    return f"incidents/{_name(id)}.json"


def _name(id: str) -> str:
    return quote(id, "")
