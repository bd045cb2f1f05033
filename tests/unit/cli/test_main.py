from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine import __version__
from engine.cli import commands as package
from engine.cli import main as entry
from engine.cli.main import command_files, exit_code, explanation, main, summary
from engine.errors import ConfigError, RulesError, RuntimeMissing, SourceMissing, StoreError, TocsinError, UsageError
from engine.model.diagnostics import Diagnostic, Level

ROOT = Path(__file__).parents[3]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of commands of its own: what the files in it say is what `tocsin` can do."""
    monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    for module in [m for m in sys.modules if m.startswith("engine.cli.commands.")]:
        monkeypatch.delitem(sys.modules, module)
    return tmp_path


def command(folder: Path, name: str, body: str) -> None:
    lines = ["import typer", "from engine.errors import *", "app = typer.Typer()", "@app.command()", "def run() -> None:"]
    (folder / f"{name}.py").write_text(f'"""Do {name}."""\n' + "\n".join(lines) + f"\n    {body}\n")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=False, cwd=ROOT, capture_output=True, text=True)


def test_a_new_command_is_one_new_file(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(commands, "toll_bell", "print('ding')")
    assert main(["toll-bell"]) == 0
    assert capsys.readouterr().out == "ding\n"
    assert main(["--help"]) == 0
    assert "toll-bell  Do toll_bell." in capsys.readouterr().out


def test_help_imports_no_command(commands: Path) -> None:
    (commands / "broken.py").write_text('"""Cannot be imported."""\nraise RuntimeError\n')
    assert main(["--help"]) == 0


def test_a_file_with_an_underscore_is_no_command(commands: Path) -> None:
    command(commands, "_shared", "pass")
    assert main(["-shared"]) == main(["_shared"]) == 2


def test_an_unknown_command_names_the_nearest(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(commands, "scan", "pass")
    assert main(["scna"]) == 2
    assert capsys.readouterr().err == "tocsin: there is no command `scna`; did you mean `scan`?\n"


@pytest.mark.parametrize(
    ("raised", "code"),
    [("UsageError('x')", 2), ("SourceMissing('x')", 3), ("StoreError('x')", 3), ("RuntimeMissing('x')", 3)],
)
def test_a_known_failure_is_one_sentence(commands: Path, capsys: pytest.CaptureFixture[str], raised: str, code: int) -> None:
    command(commands, "fail", f"raise {raised}")
    assert main(["fail"]) == code
    assert capsys.readouterr().err == "tocsin: x\n"


def test_a_missing_package_is_named_with_its_remedy(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commands / "far.py").write_text('"""Needs much."""\nimport package_that_is_not_there\n')
    assert main(["far"]) == 3
    assert capsys.readouterr().err == (
        "tocsin: `tocsin far` needs the package package_that_is_not_there; "
        "install what is optional with: pip install 'tocsin[spark]'\n"
    )


def test_the_packages_of_the_pages_are_an_extra_of_their_own(
    commands: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    (commands / "show.py").write_text('"""Needs pages."""\nimport starlette\n')
    assert main(["show"]) == 3
    assert "pip install 'tocsin[web]'" in capsys.readouterr().err


def test_a_defect_shows_its_trace_and_is_no_finding(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(commands, "fail", "1 / 0")
    assert main(["fail"]) == 3
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "please report it" in said


def test_a_command_chooses_its_own_code(commands: Path) -> None:
    command(commands, "found", "raise typer.Exit(1)")
    assert main(["found"]) == 1


def test_an_interrupt_ends_quietly(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(commands, "long", "raise KeyboardInterrupt")
    assert main(["long"]) == 130
    assert capsys.readouterr().err == ""


def test_every_diagnostic_is_printed() -> None:
    found = [Diagnostic("R001", Level.ERROR, f"{n}.yml", n, 1, f"wrong {n}", help="mend it") for n in (1, 2)]
    said = explanation(RulesError(found))
    assert "--> 1.yml:1:1" in said
    assert "--> 2.yml:2:1" in said
    assert said.endswith("tocsin: 2 problems found; nothing was run")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (RulesError([]), 2),
        (ConfigError([]), 2),
        (SourceMissing("x"), 3),
        (StoreError("x"), 3),
        (RuntimeMissing("x"), 3),
        (TocsinError("x"), 3),
    ],
)
def test_exit_codes(error: TocsinError, code: int) -> None:
    assert exit_code(error) == code


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tocsin {__version__}\n"


def test_a_reader_that_goes_away_is_no_trouble(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(commands, "talk", "raise BrokenPipeError")
    assert main(["talk"]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", command_files())
def test_every_command_has_a_summary_and_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(command_files()[name])[-1] == "."
    assert main([name, "--help"]) == 0
    assert "Examples:" in capsys.readouterr().out


def test_help_loads_nothing_it_does_not_need() -> None:
    probe = "import sys; from engine.cli.main import main; main(['--help']); print(' '.join(sys.modules), file=sys.stderr)"
    loaded = set(python("-c", probe).stderr.split())
    assert "typer" in loaded
    assert not loaded & {"rich", "pydantic", "yaml", "pyparsing", "re2", "msgspec", "drain3", "pyspark", "connectors"}


def test_a_scan_of_a_small_file_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("[2022-10-05 17:05:01,000] INFO started (kafka.server.KafkaServer)\n")
    assert main(["scan", str(log)]) == 0, "the rules are compiled from now on"
    probe = f"import sys; from engine.cli.main import main; main(['scan', {str(log)!r}]); print(*sys.modules, file=sys.stderr)"
    loaded = set(python("-c", probe).stderr.split())
    assert "re2" in loaded
    assert not loaded & {"pydantic", "yaml", "pyparsing", "pyarrow", "numpy", "drain3", "sqlalchemy", "jinja2", "email", "ssl"}


def test_a_cache_that_others_can_write_to_is_told_of_once_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tocsin").mkdir()
    (tmp_path / "tocsin").chmod(0o777)
    (tmp_path / "broker.log").write_text("[2022-10-05 17:05:01,000] INFO started (kafka.server.KafkaServer)\n")
    assert main(["scan", str(tmp_path / "broker.log")]) == 0
    assert capsys.readouterr().err.count("is not used, as other users can write to it") == 1
    assert list((tmp_path / "tocsin").iterdir()) == []


@pytest.mark.parametrize("command", [[], ["scan"], ["rules", "lint"], ["receivers"]], ids=" ".join)
def test_h_is_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "-h"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: {' '.join(['tocsin', *command])} ")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("tocsin sc", ["scan"]),
        ("tocsin scan --dis", ["--display-tz"]),
        ("tocsin rules expl", ["explain", "explain-code"]),
        ("tocsin --vers", ["--version"]),
    ],
)
def test_a_shell_completes_commands_and_options(
    words: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"_TOCSIN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out.split() == completed


def test_the_names_of_commands_are_completed_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "_import_command", lambda command: pytest.fail(f"{command} was imported"))
    monkeypatch.setenv("_TOCSIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "tocsin ")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert main([]) == 0
