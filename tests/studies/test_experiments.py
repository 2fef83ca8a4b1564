"""The studies that come with the project, and the README's example, are ones that can be started."""

import re
from pathlib import Path

import pytest

from mtl.studies.equal import check_equal
from mtl.studies.expand import expand
from mtl.studies.spec import read_study

EXPERIMENTS = sorted((Path(__file__).resolve().parents[2] / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_a_study_has_a_question_and_one_comparison_and_can_be_started(
    path: Path, request: pytest.FixtureRequest
) -> None:
    settings = []
    if "glue" in path.read_text(encoding="utf-8"):
        settings = [f"data.root={request.getfixturevalue('shared_data')}"]
    study = read_study(path, settings)
    assert study.name == path.stem
    assert study.question.endswith("?")
    assert study.primary is not None
    runs = expand(study, Path("out"))
    assert len(study.seeds) >= 3
    assert len(runs) >= 2 * len(study.seeds)
    check_equal(study, runs)


def test_the_sampling_study_is_as_large_as_it_says() -> None:
    (path,) = (path for path in EXPERIMENTS if path.stem == "mini_sampling")
    assert len(expand(read_study(path), Path("out"))) == 25


def test_every_arm_of_the_sampling_schedules_counts_the_official_sizes(shared_data: Path) -> None:
    (path,) = (path for path in EXPERIMENTS if path.stem == "sampling_schedules")
    settings = [run.config.sampling for run in expand(read_study(path, [f"data.root={shared_data}"]), Path("out"))]
    assert {each.sizes for each in settings} == {"official"}
    assert len({each.model_dump_json() for each in settings}) == 6


def test_make_quickstart_carries_out_its_study_and_shows_it(repository: Path) -> None:
    recipe = (repository / "Makefile").read_text(encoding="utf-8").split("\nquickstart:")[1]
    assert "study experiments/quickstart.yaml --launcher local --out $(QUICKSTART)" in recipe
    for shown in ("table $(QUICKSTART)", "plot forest $(QUICKSTART) --out", "report $(QUICKSTART)"):
        assert f"$(BIN)/mtl {shown}" in recipe


def test_the_example_of_the_readme_can_be_started(repository: Path, tmp_path: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(name: mini_sampling\n.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "study.yaml").write_text(example, encoding="utf-8")
    study = read_study(tmp_path / "study.yaml")
    assert len(expand(study, tmp_path)) == 10


def test_every_key_of_a_study_is_told_in_the_readme(repository: Path) -> None:
    from mtl.studies.spec import SlurmSettings, StudySpec

    section = (repository / "README.md").read_text(encoding="utf-8").split("\n## Studies")[1].split("\n## ")[0]
    keys = {*StudySpec.model_fields, *SlurmSettings.model_fields}
    assert {key for key in keys if not re.search(rf"\b{key}\b", section)} == set()
