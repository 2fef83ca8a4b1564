import subprocess
import sys
from pathlib import Path

import pytest

from mtl import api
from mtl.cli import main
from mtl.errors import DataError, StoppedError
from mtl.tasks import registry


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every plan end with `error`."""

    def plan(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(api, "plan", plan)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("no rows: get some"), 3, "no rows: get some"),
        (StoppedError("stopped: resume"), 75, "stopped: resume"),
        (StoppedError("stopped: resume", interrupted_by_user=True), 130, "stopped: resume"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_for_the_user_is_a_message_and_an_exit_code(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(error, monkeypatch)
    assert main(["plan", "quickstart"]) == code
    assert capsys.readouterr() == ("", f"mtl plan: {message}\n")


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError("a fault"), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        main(["plan", "quickstart"])


@pytest.mark.parametrize(
    "argv", [[], ["trian"], ["plan", "--no-such-flag"], ["run", "mini", "--resume", "--overwrite"], ["table"]]
)
def test_wrong_usage_is_exit_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert "usage: mtl" in capsys.readouterr().err


def test_a_wrong_config_is_exit_code_2_and_names_the_nearest_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "sed=3"]) == 2
    assert "did you mean seed?" in capsys.readouterr().err


def test_help_names_every_verb_and_each_verb_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for verb in ("run", "plan", "eval", "table", "compare", "tasks", "doctor", "prepare"):
        assert f"\n  {verb} " in shown
        assert main([verb, "--help"]) == 0
        assert f"usage: mtl {verb}" in capsys.readouterr().out


def test_flags_and_settings_mix_in_any_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--official-sizes", "quickstart", "seed=3", "--json", "out=there"]) == 0
    mixed = capsys.readouterr().out
    assert main(["plan", "quickstart", "seed=3", "out=there", "--official-sizes", "--json"]) == 0
    assert capsys.readouterr().out == mixed


def test_a_plugin_is_imported_before_the_config_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugin_of_a_test.py").write_text(
        "from mtl import tasks\n"
        "tasks.register_task(tasks.get('mini/entail2').model_copy(update={'name': 'plugged/task'}))\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    assert main(["plan", "quickstart", "tasks=[plugged]"]) == 2
    assert main(["plan", "quickstart", "tasks=[plugged]", "--plugin", "plugin_of_a_test", "--official-sizes"]) == 0
    assert "plugged/task" in capsys.readouterr().out


def test_a_missing_plugin_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "--plugin", "no_such_module.at_all"]) == 2
    assert "no_such_module.at_all" in capsys.readouterr().err


def test_run_is_given_the_config_and_the_flags_and_prints_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, object] = {}

    class Complete:
        status = "complete"

    def run(config: object, **flags: object) -> Complete:
        seen.update(flags, config=config)
        return Complete()

    monkeypatch.setattr(api, "run", run)
    monkeypatch.setattr(api, "table", lambda path: f"the table of {path}\n")
    assert main(["run", "quickstart", "--overwrite", "out=elsewhere"]) == 0
    assert (seen["resume"], seen["overwrite"]) == (False, True)
    assert capsys.readouterr().out == "the table of elsewhere\n"
    Complete.status = "failed"
    assert main(["run", "quickstart", "--resume"]) == 1


@pytest.mark.parametrize(
    "argv", [["--help"], ["plan", "quickstart"], ["tasks"], ["plan", "glue", "--official-sizes", "--json"]]
)
def test_what_must_answer_at_once_loads_nothing_heavy(argv: list[str], repository: Path) -> None:
    code = (
        "import sys\nfrom mtl.cli import main\n"
        f"code = main({argv!r})\n"
        "heavy = [name for name in ('torch', 'transformers', 'datasets', 'pandas', 'scipy') if name in sys.modules]\n"
        "sys.exit(f'{code}, loaded {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_package_runs_as_a_module(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mtl", "plan", "no_such"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_verbs_that_are_the_work_of_one_process_are_refused_under_torchrun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert main(["tasks"]) == 2
    assert capsys.readouterr().err == "[rank 1] mtl tasks: torchrun started 2 processes, but tasks is the work of one\n"
