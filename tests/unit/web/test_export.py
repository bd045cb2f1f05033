"""The pages as files: complete without a server, and nothing in them leads out of their folder."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from engine.cli.main import main
from engine.model.links import NO_LINKS
from engine.store import Store
from engine.web.export import write_pages
from tests.unit.cli.incidents import TOO_LARGE, incident
from tests.unit.web.conftest import NOW, Fill
from tests.unit.web.test_pages import Tags


def addresses(page: Path) -> list[str]:
    tags = Tags(page.read_text(encoding="utf-8")).found
    return [value for _, attributes in tags for name in ("href", "src") if (value := attributes.get(name))]


def test_every_address_on_a_page_is_a_file_beside_it(store: Store, fill: Fill, tmp_path: Path) -> None:
    merged = incident(id="inc-2", status="merged", merged_into=TOO_LARGE.id, references=())
    fill(TOO_LARGE, merged, incident(id="../../inc-3/<x>", references=()))
    out = tmp_path / "deep" / "pages"
    assert write_pages(store, out, NOW, NO_LINKS) == 2, "a part of another is none of its own"
    pages = list(out.rglob("*.html"))
    assert len(pages) == 4
    assert {path.parent for path in tmp_path.rglob("*.html")} == {out, out / "incidents"}
    for page in pages:
        local = [a for a in addresses(page) if not a.startswith(("https://kafka.apache.org", "#"))]
        assert local
        assert all((page.parent / a.replace("%25", "%")).is_file() for a in local), (page, local)
        assert "<style>" in page.read_text()


def test_a_folder_that_is_made_is_for_its_user_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        write_pages(store, tmp_path / "made", NOW, NO_LINKS)
        write_pages(store, tmp_path / "there", NOW, NO_LINKS)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("made", "there")] == [0o700, 0o755]


def test_the_json_beside_a_page_is_that_incident(store: Store, fill: Fill, tmp_path: Path) -> None:
    fill(TOO_LARGE)
    write_pages(store, tmp_path / "pages", NOW, NO_LINKS)
    assert json.loads((tmp_path / "pages/incidents" / f"{TOO_LARGE.id}.json").read_text())["title"] == TOO_LARGE.title


def test_pages_of_an_earlier_time_are_replaced(store: Store, fill: Fill, tmp_path: Path) -> None:
    stale = tmp_path / "incidents" / "inc-old.html"
    stale.parent.mkdir()
    stale.write_text("old")
    fill(TOO_LARGE)
    write_pages(store, tmp_path, NOW, NO_LINKS)
    assert not stale.exists()


def test_the_command_says_where_the_pages_are(tmp_path: Path, capsys: object) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources:\n  - {type: files, paths: [logs]}\n")
    assert main(["pages", "-c", str(config), "--out", str(tmp_path / "out")]) == 0
    assert "No incidents." in (tmp_path / "out/index.html").read_text()
