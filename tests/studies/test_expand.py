"""All runs of a study: a pure function, equal runs once, every run in a place of its own."""

import builtins
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtl.config.hashes import difference
from mtl.config.replayed import replayed_run
from mtl.errors import ConfigError
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.spec import StudySpec, validate_study

OUT = Path("out")
TINY = ["tasks=[mini/entail2,mini/similarity,mini/acceptability]", "stages=[joint]", "training.updates=8"]


def study(**parts: Any) -> StudySpec:
    """A study of three small tasks; without arms it has one that changes nothing."""
    document: dict[str, Any] = {"name": "s", "question": "q", "base": "quickstart", "seeds": "2", "overrides": TINY}
    if not {"arms", "grid", "pairwise", "leave_one_out"} & set(parts):
        parts["arms"] = {"plain": []}
    return validate_study({**document, **parts}, Path("study.yaml"))


def runs_of(**parts: Any) -> tuple[PlannedRun, ...]:
    return expand(study(**parts), OUT)


def arms(runs: tuple[PlannedRun, ...]) -> list[tuple[str, ...]]:
    """The arms of the first seed's runs."""
    return [run.arms for run in runs if run.seed == 1]


def refused(**parts: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        runs_of(**parts)
    return str(caught.value)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "sampling.temperature": st.sampled_from(["1", "2", "5"]),
        "training.updates": st.sampled_from(["4", "8"]),
        "optimizer.learning_rate": st.sampled_from(["1e-3", "0.001", "3e-4"]),
        "logging.every": st.sampled_from(["1", "2"]),
    },
)


@settings(max_examples=15)
@given(
    st.dictionaries(st.sampled_from("abcd"), SETTINGS, min_size=1, max_size=4),
    st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
)
def test_every_arm_and_seed_has_exactly_one_run_and_equal_ones_share(
    documents: dict[str, dict[str, str]], seeds: list[int]
) -> None:
    parts = {"arms": documents, "seeds": [str(seed) for seed in seeds]}
    runs = runs_of(**parts)
    assert runs == runs_of(**parts)
    members = [(arm, run.seed) for run in runs for arm in run.arms]
    assert sorted(members) == sorted((arm, seed) for arm in documents for seed in seeds)
    for kind in ("directory", "identity"):
        assert len({getattr(run, kind) for run in runs}) == len(runs)
    for run in runs:
        assert run.directory == OUT / "runs" / run.arms[0] / f"seed-{run.seed}-{run.identity[:8]}"
        assert run.config.out == str(run.directory)
        assert run.config.seed == run.seed
    of_first = [run for run in runs if run.seed == seeds[0]]
    for one in of_first:
        for other in of_first:
            assert bool(difference(one.config, other.config)) == (one is not other)


def test_nothing_is_read_but_recipes_and_no_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[str] = []
    original = builtins.open

    def watched(file: Any, *arguments: Any, **named: Any) -> Any:
        opened.append(str(file))
        return original(file, *arguments, **named)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "open", watched)
    for clock in ("time", "monotonic", "time_ns"):
        monkeypatch.setattr(time, clock, lambda: pytest.fail("a clock was read"))
    before = runs_of(arms={"a": [], "b": ["sampling=uniform"]})
    assert runs_of(arms={"a": [], "b": ["sampling=uniform"]}) == before
    assert [path for path in opened if not path.endswith(".yaml")] == []
    assert list(tmp_path.iterdir()) == []


def test_an_identity_does_not_depend_on_names_or_neighbours() -> None:
    alone = {run.seed: run.identity for run in runs_of(arms={"x": ["sampling=uniform"]})}
    other = {run.seed: run.identity for run in runs_of(arms={"y": [], "z": ["sampling=uniform"]}) if "z" in run.arms}
    assert alone == other


def test_single_task_baselines_are_shared_where_only_the_joint_block_differs() -> None:
    single = ["stages=[single]"]
    runs = runs_of(
        arms={"a": [*single, "joint.sampling.kind=uniform"], "b": [*single, "joint.weighting.kind=size"], "c": TINY}
    )
    assert arms(runs) == [("a", "b"), ("c",)]
    # What stands outside the block is part of every stage, so it is not known to be without effect.
    assert arms(runs_of(arms={"a": [*single, "sampling=uniform"], "b": single})) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("first", "second"),
    [("data.root=here", "data.root=there"), ("init.from=runs/here", "init.from=runs/there")],
)
def test_runs_from_other_places_are_not_shared(first: str, second: str) -> None:
    assert arms(runs_of(arms={"a": [first], "b": [second], "c": [first]})) == [("a", "c"), ("b",)]


def test_tasks_of_the_same_words_from_other_folders_are_not_shared(tmp_path: Path) -> None:
    names = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "reviews.yaml").write_text(
            "{name: shared_words/reviews, files: {train: t.csv, dev: d.csv}, texts: [t], label: l, labels: [a, b]}"
        )
        names.append(f"tasks=[{tmp_path / place / 'reviews.yaml'}]")
    assert arms(runs_of(arms={"a": [names[0]], "b": [names[1]], "c": [names[0]]})) == [("a", "c"), ("b",)]


def test_a_grid_is_the_product_and_its_names_can_be_read() -> None:
    runs = runs_of(grid={"sampling.temperature": ["1", "2"], "sampling.cap": [None, "100"]})
    assert [names for (names,) in arms(runs)] == [
        "temperature=1,cap=null",
        "temperature=1,cap=100",
        "temperature=2,cap=null",
        "temperature=2,cap=100",
    ]
    assert [run.config.sampling.cap for run in runs if run.seed == 1] == [None, 100, None, 100]  # type: ignore[attr-defined]
    kinds = runs_of(grid={"sampling.kind": ["uniform", "proportional"], "single.training.updates": ["3"]})
    assert arms(kinds)[0] == ("sampling=uniform,updates=3",)
    clash = runs_of(grid={"single.training.updates": ["3"], "finetune.training.updates": ["4"]})
    assert arms(clash)[0] == ("single.training.updates=3,finetune.training.updates=4",)


def test_pairs_and_singles() -> None:
    runs = runs_of(pairwise=["mini/entail2", "mini/similarity", "mini/acceptability"])
    assert [names for (names,) in arms(runs)] == [
        "entail2",
        "similarity",
        "acceptability",
        "entail2+similarity",
        "entail2+acceptability",
        "similarity+acceptability",
    ]
    assert [run.config.stages for run in runs if run.seed == 1] == [("single",)] * 3 + [("joint",)] * 3
    assert runs[-1].config.tasks == ("mini/similarity", "mini/acceptability")
    assert "add joint to stages" in refused(pairwise=["mini"], overrides=["stages=[single]"])
    assert "at least two tasks" in refused(pairwise=["mini/entail2"])


def test_all_and_all_but_each() -> None:
    runs = runs_of(leave_one_out=["mini/entail2", "mini/similarity", "mini/acceptability"])
    assert arms(runs) == [("all",), ("without-entail2",), ("without-similarity",), ("without-acceptability",)]
    assert runs[2].config.tasks == ("mini/similarity", "mini/acceptability")


def test_a_run_waits_for_the_run_of_its_seed_that_it_starts_from() -> None:
    runs = runs_of(
        arms={"later": ["init.from=arm:first"], "first": ["sampling=uniform"], "same": ["init.from=arm:first"]}
    )
    assert arms(runs) == [("later", "same"), ("first",)]
    first = {run.seed: run for run in runs if "first" in run.arms}
    for run in runs[:2]:
        assert run.waits_for == (first[run.seed].directory,)
        assert run.config.init.from_ == str(run.starts_from)
    # Another start makes another run, whatever else is equal.
    other = runs_of(arms={"later": ["init.from=arm:first"], "first": []})
    assert other[0].identity != runs[0].identity
    assert "there is no arm" not in refused(arms={"a": ["init.from=arm:b"]})
    assert "names the arm b, which the study does not have" in refused(arms={"a": ["init.from=arm:b"]})
    alone = ["init.from=arm:b", "init.stage=single", "stages=[finetune]"]
    assert "the arm b has only the stages ['joint']" in refused(arms={"a": alone, "b": []})
    one = ["stages=[single]", "tasks=[mini/entail2]"]
    assert "mini/acceptability, mini/similarity, which the arm b does not" in refused(arms={"a": alone, "b": one})
    assert "a -> b -> a" in refused(arms={"a": ["init.from=arm:b"], "b": ["init.from=arm:a"]})


def test_a_run_replays_the_run_of_its_seed_that_it_names() -> None:
    arms_of: dict[str, list[str]] = {
        "later": ["sampling=replay", "sampling.from=arm:first", "optimizer.beta1=0.5"],
        "blocks": ["joint.sampling={kind: replay, from: arm:first}", "optimizer.beta1=0.5", "init.from=arm:other"],
        "first": ["sampling=uniform"],
        "other": [],
    }
    runs = runs_of(arms=arms_of)
    first, other = ({run.seed: run.directory for run in runs if name in run.arms} for name in ("first", "other"))
    for run in runs:
        if run.arms[0] in ("later", "blocks"):
            assert run.replays == first[run.seed]
            assert replayed_run(run.config) == str(first[run.seed])
        if run.arms == ("blocks",):
            assert run.waits_for == (other[run.seed], first[run.seed])
    again = runs_of(arms={**arms_of, "first": ["sampling.temperature=3"]})
    assert again[0].identity != runs[0].identity, "what is replayed makes another run"
    assert "sampling.from names the arm b" in refused(arms={"a": ["sampling=replay", "sampling.from=arm:b"]})
    circle = {"a": ["sampling=replay", "sampling.from=arm:b"], "b": ["init.from=arm:a"]}
    assert "a -> b -> a" in refused(arms=circle)
    assert "set sampling.from" in refused(arms={"a": ["sampling=replay"]})
    none = {"a": ["sampling=replay", "sampling.from=arm:b"], "b": ["stages=[single]"]}
    assert "replays a joint stage, and the arm b has none" in refused(arms=none)


def test_a_kind_of_an_arm_that_drops_what_the_study_set_is_refused() -> None:
    official = [*TINY, "sampling.sizes=official"]
    told = refused(overrides=official, arms={"even": ["sampling=uniform"]})
    assert "arm even: of the study's overrides, sampling.sizes is dropped by the kind that is named after it" in told
    assert "set it again with that kind in the arm" in told
    (run, *_) = runs_of(overrides=official, arms={"even": ["sampling=uniform", "sampling.sizes=official"]})
    assert run.config.sampling.sizes == "official"
    assert runs_of(overrides=[*TINY, "sampling.temperature=3"], arms={"even": ["sampling=uniform"]})


@pytest.mark.parametrize(
    ("grid", "told"),
    [
        (
            {"training.updates": ["1", "2"], "training.epochs": ["1"]},
            "the grid's training.updates would have no effect",
        ),
        ({"sampling": ["uniform", "power"], "sampling.kind": ["uniform"]}, "the grid's sampling would have no effect"),
        (
            {"sampling.temperature": ["1", "2"], "sampling": ["uniform", "temperature"]},
            "name a kind before its settings",
        ),
        ({"sampling": ["uniform", "temperature"], "sampling.temperature": ["1", "2"]}, "of another kind than uniform"),
    ],
)
def test_a_key_of_a_grid_without_effect_is_refused(grid: dict[str, list[str]], told: str) -> None:
    assert told in refused(grid=grid)


def test_a_study_in_folds_has_a_run_for_each() -> None:
    arms_of = {"a": ["init.from=arm:b"], "b": ["sampling=uniform"]}
    runs = runs_of(arms=arms_of, folds=3)
    assert [(run.arms, run.seed, run.fold) for run in runs] == [
        ((arm,), seed, fold) for arm in ("a", "b") for seed in (1, 2) for fold in (0, 1, 2)
    ]
    sources = {(run.seed, run.fold): run.directory for run in runs if run.arms == ("b",)}
    for run in runs:
        assert (run.config.splits.kfold, run.config.splits.fold) == (3, run.fold)
        assert run.directory == OUT / "runs" / run.arms[0] / f"seed-{run.seed}-fold-{run.fold}-{run.identity[:8]}"
        assert run.title == f"{run.arms[0]}, seed {run.seed}, fold {run.fold}"
        assert run.starts_from == (sources[run.seed, run.fold] if run.arms == ("a",) else None)
    assert len({run.identity for run in runs}) == 12
    assert not {run.identity for run in runs} & {run.identity for run in runs_of(arms=arms_of, folds=4)}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"arms": {"a": ["sampling.temprature=2"]}}, r"arm a: .*did you mean"),
        ({"arms": {"a": ["tasks=[glue/rtee]"]}}, "arm a: unknown task"),
        ({"arms": {"a": [], "A": ["sampling=uniform"]}}, "two arms would be called A and a"),
        ({"grid": {"sampling.temperature": ["2", "2"]}}, "two arms would be called temperature=2"),
        ({"grid": {"optimizer.learning_rate": ["1e-3" + "0" * 100]}}, "an arm would be called so"),
        ({"arms": {"a": []}, "baseline": "b"}, "baseline: there is no arm b"),
        ({"arms": {"a": []}, "baseline": "a", "primary": {"arm": "b", "score": "mini"}}, "there is no arm b"),
        (
            {"arms": {"a": [], "b": []}, "baseline": "a", "primary": {"arm": "b", "score": "glue"}},
            "has no score glue; it has mini, mini/entail2",
        ),
        (
            {"arms": {"a": ["stages=[single]"], "b": []}, "baseline": "a", "primary": {"arm": "b", "score": "mini"}},
            "set primary.baseline_stage",
        ),
        ({"pairwise": ["./mine.yaml"]}, "takes names of tasks, not task files"),
    ],
)
def test_what_cannot_be_meant_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        runs_of(**parts)
