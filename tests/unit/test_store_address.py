"""The address of a store: what it names, and that its password is in no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Secret, load
from engine.dsl.codes import Code
from engine.errors import ConfigError
from engine.store_address import StoreAddress, without_password


def written(folder: Path, text: str) -> Path:
    path = folder / "tocsin.yml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/tocsin.db", "sqlite:////var/lib/tocsin.db"),
        ("postgresql+psycopg://u@h:5432/d?sslmode=require", "postgresql+psycopg://u@h:5432/d?sslmode=require"),
        ("postgresql+psycopg://u:p@ss:/word@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql+psycopg://u@server:p@h/d", "postgresql+psycopg://u@server:***@h/d"),
        ("postgresql+psycopg://domain/u:p@h/d", "postgresql+psycopg://domain/u:***@h/d"),
        ("postgresql+psycopg://domain/u@server:p/x@h/d", "postgresql+psycopg://domain/u@server:***@h/d"),
        ("postgresql+psycopg://u@server:p/a?b@h/d", "postgresql+psycopg://u@server:***@h/d"),
        ("postgresql+psycopg://u@h:5432/d?application_name=a@b", "postgresql+psycopg://u@h:5432/d?application_name=a@b"),
        ("postgresql+psycopg://h/d?sslpassword=p&password=p", "postgresql+psycopg://h/d?sslpassword=***&password=***"),
    ],
)
def test_an_address_is_printed_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == str(StoreAddress(url)) == shown


def test_only_sqlite_has_a_file() -> None:
    urls = ("sqlite:///a/b.db", "sqlite:////a/b.db", "sqlite:///:memory:", "postgresql+psycopg://h/d")
    assert [StoreAddress(url).path for url in urls] == [Path("a/b.db"), Path("/a/b.db"), None, None]


def test_a_store_on_a_server_has_its_password_by_reference_and_its_checkpoint_beside_the_configuration(tmp_path: Path) -> None:
    url = "postgresql+psycopg://tocsin@db:5432/tocsin?sslmode=verify-full"
    text = f"sources: [{{type: files, paths: [a]}}]\nstore: {{url: '{url}', password: 'file:secrets/db'}}\n"
    settings = load(written(tmp_path, text))
    assert settings.store == StoreAddress(url, Secret("file", str(tmp_path / "secrets/db")))
    assert settings.store.path is None
    assert settings.checkpoint == tmp_path / ".tocsin/tocsin.checkpoint"


@pytest.mark.parametrize(
    "store",
    [
        "postgresql+psycopg://tocsin:not/told@db/tocsin",
        "'postgresql+psycopg://tocsin:not@told@db/tocsin'",
        "'postgresql+psycopg://tocsin@server:not-told@db/tocsin'",
        "postgresql+psycopg://db/tocsin?password=not-told",
        "{url: 'postgresql+psycopg://tocsin:not-told@db/tocsin'}",
    ],
)
def test_a_password_within_the_address_of_a_store_is_an_error_that_does_not_print_it(tmp_path: Path, store: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        load(written(tmp_path, f"sources: [{{type: files, paths: [a]}}]\nstore: {store}\n"))
    (finding,) = wrong.value.diagnostics
    assert (finding.code, finding.line) == (Code.BAD_SECRET.id, 2)
    assert "told" not in f"{finding} {finding.source_line} {wrong.value}"


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://db/tocsin",
        "postgresql+psycopg://db",
        "postgresql+psycopg://db:port/tocsin",
        "{url: 'sqlite:///a.db', password: 'env:X'}",
        "sqlite:///",
        "{password: 'env:X'}",
        "[a]",
    ],
)
def test_what_is_no_address_of_a_store_is_an_error(tmp_path: Path, store: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        load(written(tmp_path, f"sources: [{{type: files, paths: [a]}}]\nstore: {store}\n"))
    assert {finding.line for finding in wrong.value.diagnostics} == {2}
