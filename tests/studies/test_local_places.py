"""How many runs a machine takes at a time when nobody says."""

from pathlib import Path

import pytest

from mtl.studies.expand import PlannedRun, expand
from mtl.studies.launchers import local
from mtl.studies.launchers.local import Place, places_for
from mtl.studies.spec import validate_study


def runs_of(*overrides: str, arms: int = 3) -> tuple[PlannedRun, ...]:
    """Two runs for each arm."""
    document = {
        "name": "s",
        "question": "q",
        "base": "quickstart",
        "overrides": ["training.device=cpu", *overrides],
        "arms": {f"a{number}": [f"training.updates={number + 1}"] for number in range(arms)},
        "seeds": 2,
    }
    return expand(validate_study(document, Path("study.yaml")), Path("out"))


@pytest.mark.parametrize(
    ("cores", "overrides", "workers"),
    [
        # The quickstart says one thread.
        (1, [], 1),
        (2, [], 2),
        (5, [], 5),
        (64, [], 6),
        (2, ["training.threads=4"], 1),
        (8, ["training.threads=3"], 2),
        (8, ["training.threads=2", "training.devices=2"], 2),
        # Nothing says how many threads pay, so one run has all cores.
        (8, ["training.threads=null"], 1),
    ],
)
def test_as_many_runs_as_have_a_core_for_each_thread(
    cores: int, overrides: list[str], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS")
    places = places_for(runs_of(*overrides), None, 1)
    assert places == [Place(threads=cores // workers)] * workers


def test_a_run_that_takes_all_cores_is_not_given_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: 4)
    mixed = (*runs_of(arms=1), *runs_of("training.threads=null", arms=1))
    assert len(places_for(mixed, None, 1)) == 1


def test_whoever_says_how_many_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert places_for(runs_of(), 3, 1) == [Place(threads=1)] * 3
