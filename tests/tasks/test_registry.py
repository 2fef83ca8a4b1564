"""Names, suites and subtractions select the tasks that a reader of the configuration expects."""

import pytest

from mtl import tasks
from mtl.errors import ConfigError
from mtl.tasks import glue, registry


@pytest.fixture
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registrations of one test stay in that test."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))


def test_get_returns_the_spec() -> None:
    assert tasks.get("glue/rte") is glue.RTE


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("glue/rtee", "glue/rte"), ("GLUE/SST2", "glue/sst2"), ("glue/sts-b", "glue/stsb")]
)
def test_unknown_task_names_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=nearest):
        tasks.get(wrong)


def test_a_name_like_no_other_lists_what_is_known() -> None:
    with pytest.raises(ConfigError, match=r"known are .*glue/wnli"):
        tasks.get("zzzzzzzzzz/qqqqqqqqqq")


def test_suite_expands_to_its_tasks_in_order() -> None:
    assert tasks.expand(["glue"]) == tuple(spec.name for spec in glue.SPECS)


def test_subtraction_keeps_the_order_of_the_rest() -> None:
    expected = tuple(spec.name for spec in glue.SPECS if spec.name not in ("glue/wnli", "glue/qqp"))
    assert tasks.expand(["glue", "-glue/wnli", "-glue/qqp"]) == expected


def test_no_duplicates_and_first_mention_decides_the_order() -> None:
    assert tasks.expand(["glue/rte", "glue/cola", "glue/rte"]) == ("glue/rte", "glue/cola")
    assert tasks.expand(["glue/wnli", "glue"])[0] == "glue/wnli"
    assert len(tasks.expand(["glue/wnli", "glue"])) == 9


def test_what_was_taken_away_may_come_back_at_the_end() -> None:
    assert tasks.expand(["glue/rte", "glue/cola", "-glue/rte", "glue/rte"]) == ("glue/cola", "glue/rte")


def test_a_suite_may_be_taken_away_whole() -> None:
    assert tasks.expand(["glue", "-glue", "glue/rte"]) == ("glue/rte",)


@pytest.mark.parametrize("patterns", [["-glue/wnli", "glue"], ["glue/rte", "-glue/wnli"], ["-glue"]])
def test_taking_away_what_is_not_there_is_refused(patterns: list[str]) -> None:
    with pytest.raises(ConfigError, match="takes away"):
        tasks.expand(patterns)


@pytest.mark.parametrize(("pattern", "nearest"), [("gleu", "glue"), ("-glu", "glue"), ("glue/mnly", "glue/mnli")])
def test_unknown_pattern_names_the_nearest(pattern: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=nearest):
        tasks.expand(["glue", pattern])


@pytest.mark.usefixtures("scratch_registry")
def test_a_registered_task_is_known_and_its_suite_too() -> None:
    spec = glue.RTE.model_copy(update={"name": "own/rte"})
    tasks.register_task(spec)
    assert tasks.get("own/rte") is spec
    assert tasks.names()[-1] == "own/rte"
    assert "own" in tasks.suite_names()
    assert tasks.expand(["own"]) == ("own/rte",)


@pytest.mark.usefixtures("scratch_registry")
def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="registered already"):
        tasks.register_task(glue.RTE.model_copy(update={"version": 2}))


def test_shipped_suites_are_known() -> None:
    assert tasks.suite_names() == ("mini", "glue")
    assert len(tasks.expand(["mini"])) == 6
