"""Where the pages are, seen from one of them: served below the root of a host, or files of one folder."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct


class Addresses(Struct, frozen=True):
    """The addresses of pages. `files`: they lie in a folder that can be moved, and `above` leads from the page to it."""

    files: bool = False
    above: str = ""

    @property
    def home(self) -> str:
        """The list of incidents."""
        return f"{self.above}index.html" if self.files else "/"

    def incident(self, id: str) -> str:
        """Return the address of an incident's page."""
        return f"{self.above}{quote(page_file(id))}" if self.files else f"/incidents/{quote(id, '')}"

    def json(self, id: str) -> str:
        """Return the address of an incident as JSON."""
        return f"{self.above}{quote(json_file(id))}" if self.files else f"/incidents/{quote(id, '')}.json"


SERVED = Addresses()


def page_file(id: str) -> str:
    """Return the file of an incident's page below the folder; whatever the id holds, it names one file in there."""
    return f"incidents/{_name(id)}.html"


def json_file(id: str) -> str:
    """Return the file of an incident as JSON below the folder."""
    return f"incidents/{_name(id)}.json"


def _name(id: str) -> str:
    return quote(id, "")
