"""`mtl bench`: its words become the measurement's settings, and its figures a text and a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from mtl import api
from mtl.cli import main


class Document:
    """Stands for a report."""

    def model_dump_json(self, indent: int) -> str:
        return json.dumps({"figures": 1}, indent=indent)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, dict[str, Any]]]:
    """The calls of each kind of measurement, which take no time here."""
    calls: list[tuple[str, Any, dict[str, Any]]] = []
    for kind in ("training", "evaluation", "tokenising"):

        def bench(config: Any, *, kind: str = kind, **options: Any) -> Document:
            calls.append((kind, config, options))
            return Document()

        monkeypatch.setattr(api, f"bench_{kind}", bench)
        monkeypatch.setattr(f"mtl.cli.bench.{kind}_text", lambda document, kind=kind: f"text of {kind}\n")
    return calls


def test_training_is_measured_as_asked(
    seen: list[tuple[str, Any, dict[str, Any]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "train", "quickstart", "seed=4", "--against", "hf-tuned,hf-default", "--pairs", "5"]
    assert main([*words, "--updates", "9", "--profile", "--json", str(tmp_path / "a.json")]) == 0
    kind, config, options = seen[0]
    assert (kind, config.seed) == ("training", 4)
    assert options == {
        "against": ("hf-tuned", "hf-default"), "pairs": 5, "updates": 9, "profile": True, "plugins": [],
    }  # fmt: skip
    assert capsys.readouterr().out == "text of training\n"
    assert json.loads((tmp_path / "a.json").read_text()) == {"figures": 1}


@pytest.mark.parametrize(("word", "kind"), [("eval", "evaluation"), ("tokenise", "tokenising")])
def test_the_other_kinds(
    seen: list[tuple[str, Any, dict[str, Any]]], word: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", word, "quickstart"]) == 0
    assert (seen[0][0], seen[0][2]) == (kind, {"pairs": 3, "updates": None, "plugins": []})
    assert capsys.readouterr().out == f"text of {kind}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "quickstart", "--against", "hf-fast"], "'hf-fast' is no list"),
        (["train", "quickstart", "--against", "hf-tuned,hf-tuned"], "no list of different peers"),
        (["speed", "quickstart"], "invalid choice"),
        (["eval", "quickstart", "--against", "hf-tuned"], "not for eval"),
        (["tokenise", "quickstart", "--profile"], "not for tokenise"),
        (["train", "quickstart", "--json", "nowhere/at/all.json"], "no directory nowhere/at"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    seen: list[tuple[str, Any, dict[str, Any]]], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words]) == 2
    assert message in capsys.readouterr().err
    assert seen == []
