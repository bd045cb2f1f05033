"""Write the pages as files of one folder, which a browser shows without a server, wherever the folder is moved."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from engine.model.links import LinkTargets
from engine.model.words import ENGLISH, Words
from engine.rights import make_folder
from engine.store import Store
from engine.web.addresses import Addresses, json_file, page_file
from engine.web.answers import history_value
from engine.web.history import history_of
from engine.web.listing import UNPAGED, Query, list_incidents
from engine.web.pages import incident_page, list_page

_FOLDER = "incidents"


def write_pages(store: Store, folder: Path, now: datetime, links: LinkTargets, words: Words = ENGLISH) -> int:
    """Write the list, and a page and a JSON file for each incident, into `folder`; return how many incidents the list shows.
    The pages are in the language of `words`; the JSON is in English.

    Earlier pages in the folder are replaced. A missing folder is created for this user alone, since pages contain lines of
    logs. Raises StoreError, and OSError when the folder cannot be written to.
    """
    make_folder(folder)
    (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
    for old_file in (folder / _FOLDER).glob("inc-*.*"):
        old_file.unlink()
    listing = list_incidents(store, Query(), now, UNPAGED)
    page = list_page(listing, store.blinds(), store.losses(), now, Addresses(files=True), store.input_notes(), words=words)
    _write(folder / "index.html", page)
    for id_ in store.ids():
        history = history_of(store, id_, links, now)
        if history is not None:
            _write(folder / page_file(id_), incident_page(history, now, Addresses(files=True, root="../"), words=words))
            _write(folder / json_file(id_), json.dumps(history_value(history), ensure_ascii=False, indent=2) + "\n")
    return listing.total


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
