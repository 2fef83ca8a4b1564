from pathlib import Path

import pytest

from mtl import api
from mtl.cli import main
from mtl.evaluation.benchmarks import GLUE
from mtl.evaluation.submission import constant_file, submission_zip
from mtl.stages.submit_run import Submission


@pytest.fixture
def glue_zip(tmp_path: Path) -> Path:
    path = tmp_path / "glue.zip"
    path.write_bytes(submission_zip(GLUE, {file.name: constant_file(GLUE, file) for file in GLUE.files}))
    return path


def test_files_without_predictions_are_told_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []

    def submit(run: object, out: str, **options: object) -> Submission:
        seen.append((run, out, options))
        return Submission(Path(out), ("RTE.tsv",), {"QQP.tsv": "no rows", "WNLI.tsv": "no head"})

    monkeypatch.setattr(api, "submit", submit)
    assert main(["submit", "a/run", "--benchmark", "glue", "--out", "a.zip", "--fill-missing"]) == 0
    assert seen == [("a/run", "a.zip", {"benchmark": "glue", "stage": "joint", "fill_missing": True})]
    printed = capsys.readouterr()
    assert printed.out == "a.zip: 1 files of predictions (RTE.tsv)\n"
    assert "NOT predictions, one constant each: QQP.tsv, WNLI.tsv" in printed.err


def test_a_good_zip_is_accepted(glue_zip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--check", str(glue_zip)]) == 0
    assert "every file is there" in capsys.readouterr().out


def test_every_fault_of_a_bad_zip_is_a_line(glue_zip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contents = {file.name: constant_file(GLUE, file) for file in GLUE.files}
    contents["RTE.tsv"] = contents["RTE.tsv"].replace(b"7\tentailment", b"7\tmaybe")
    contents["WNLI.tsv"] = contents["WNLI.tsv"][:-4]
    glue_zip.write_bytes(submission_zip(GLUE, contents))
    assert main(["submit", "--check", str(glue_zip), "--benchmark", "glue"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"mtl submit: {glue_zip} would not be taken by glue:",
        "  RTE.tsv, line 9: 'maybe' is none of entailment, not_entailment",
        "  WNLI.tsv, line 147: 1 columns, not 2",
    ]


def test_a_zip_that_is_not_there_is_missing_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--check", str(tmp_path / "no.zip")]) == 3
    assert "name the zip to check" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["a/run"], ["--out", "a.zip"]])
def test_a_run_and_a_file_have_to_be_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", *words]) == 2
    assert "--out FILE" in capsys.readouterr().err


def test_a_check_takes_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "a/run", "--check", "a.zip"]) == 2
    assert "leave out RUN" in capsys.readouterr().err
