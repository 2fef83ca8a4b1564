"""Study files: what they may say, and how what they may not is answered."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mtl.errors import ConfigError
from mtl.studies.spec import read_study, study_text, validate_study

STUDY: dict[str, Any] = {
    "name": "example",
    "question": "Does it help?",
    "base": "quickstart",
    "arms": {"plain": [], "even": ["sampling=uniform"]},
    "seeds": "2",
}


def refused(origin: Path = Path("study.yaml"), **changes: Any) -> str:
    """The message that a changed study is refused with."""
    with pytest.raises(ConfigError) as caught:
        validate_study({**STUDY, **changes}, origin)
    return str(caught.value)


def test_a_study_is_frozen() -> None:
    study = validate_study(STUDY, Path("study.yaml"))
    assert study.seeds == (1, 2)
    with pytest.raises(ValidationError):
        study.name = "other"  # type: ignore[misc]


def test_lists_of_assignments_and_mappings_mean_the_same() -> None:
    spellings: list[Any] = [
        ["sampling.kind=temperature", "sampling.temperature=5"],
        {"sampling.kind": "temperature", "sampling.temperature": "5"},
        {"sampling": {"kind": "temperature", "temperature": "5"}},
    ]
    studies = [validate_study({**STUDY, "overrides": spelling}, Path("study.yaml")) for spelling in spellings]
    assert studies[0] == studies[1] == studies[2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sedes": "3"}, "sedes: unknown key; did you mean seeds?"),
        ({"primary": {"arm": "even", "scores": "mini"}, "baseline": "plain"}, "did you mean primary.score?"),
        ({"slurm": {"partitions": "gpu"}}, "did you mean slurm.partition?"),
        ({"grid": {"sampling.temperature": ["1"]}}, "exactly one of arms, grid, pairwise and leave_one_out"),
        ({"arms": None}, "this has none of them"),
        ({"arms": {}}, "at least 1 item"),
        ({"arms": {"a/b": []}}, "cannot be a name"),
        ({"arms": {"a": "sampling=uniform"}}, "arms.a must be a list of key=value"),
        ({"overrides": ["out=elsewhere"]}, "overrides sets out, which a study sets"),
        ({"arms": {"a": ["seed=4"]}}, "arms.a sets seed"),
        ({"arms": None, "grid": {"seed": ["1", "2"]}}, "grid sets seed"),
        ({"arms": {"a": {"training.updates": "1", "training.epochs": "2"}}}, "arms.a sets training.updates, and with"),
        (
            {"overrides": {"joint.training.updates": "2", "joint": None}},
            "overrides sets joint.training.updates, and with",
        ),
        ({"overrides": ["sampling.cap=5", "sampling=power"]}, "overrides sets sampling.cap, and then another kind"),
        (
            {"arms": {"a": ["sampling.sizes=official", "sampling=power"]}},
            "arms.a sets sampling.sizes, and then another",
        ),
        ({"overrides": ["joint=null", "joint.training.updates=2"]}, "overrides unsets joint, and sets a part of it"),
        ({"seeds": "0"}, "no number of seeds"),
        ({"seeds": "ten"}, "seeds: must be a list; write [ten]"),
        ({"seeds": ["1", "2", "1"]}, "seeds names 1 twice"),
        ({"seeds": []}, "at least 1 item"),
        ({"primary": {"arm": "even", "score": "mini"}}, "no baseline is set"),
        ({"primary": {"arm": "even", "score": "mini"}, "baseline": "even"}, "compares even with itself"),
        ({"equal": "time"}, "equal: must be 'updates'"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], message: str) -> None:
    assert message in refused(**changes)


def test_what_the_command_line_may_add_to_overrides() -> None:
    def added(overrides: list[str], *assignments: str) -> Any:
        return validate_study({**STUDY, "overrides": overrides}, Path("study.yaml"), assignments).overrides

    assert added(["training.updates=2"], "training.epochs=1") == {"training": {"epochs": "1"}}
    assert added(["joint.training.updates=2"], "joint=null") == {"joint": None}
    with pytest.raises(ConfigError, match="unsets joint, and sets a part of it afterwards"):
        added(["joint=null"], "joint.training.updates=2")
    known = "encoder.known_training_data=[A]"
    assert added([known, "encoder.path=a"], "encoder.path=b") == {"encoder": {"path": "b"}}
    assert added(["encoder.dropout=0"], "encoder.path=b", known)["encoder"]["known_training_data"] == ["A"]
    with pytest.raises(ConfigError, match=r"sets sampling\.sizes, and then another kind, which drops it"):
        added(["sampling.sizes=official"], "sampling=uniform")


def test_all_problems_are_named_at_once() -> None:
    message = refused(sedes="3", equal="time")
    assert "sedes" in message
    assert "equal" in message


def test_paths_are_relative_to_the_study(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "{name: s, question: q, base: [quickstart, ./own.yaml], seeds: 1, arms: {a: ['tasks=[./mine.yaml]']}}"
    )
    study = read_study(path)
    assert study.base == ("quickstart", str(tmp_path / "own.yaml"))
    assert study.arms == {"a": {"tasks": [str(tmp_path / "mine.yaml")]}}


def test_a_study_written_down_is_read_back_as_the_same(tmp_path: Path) -> None:
    changes = {"overrides": ["encoder.dropout=null", "tasks=[mini,-mini/entail3]"], "slurm": {"gres": "gpu:1"}}
    study = validate_study({**STUDY, **changes}, tmp_path / "study.yaml", ["optimizer.learning_rate=3e-4"])
    copy = tmp_path / "elsewhere" / "study.yaml"
    copy.parent.mkdir()
    copy.write_text(study_text(study), encoding="utf-8")
    assert read_study(copy) == study
