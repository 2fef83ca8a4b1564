"""The files in configs/: complete, valid, and open to every change."""

from pathlib import Path
from typing import Any

import pytest

from mtl.config.documents import read_yaml
from mtl.config.encoder import ENCODERS
from mtl.config.load import load_config, shipped_names
from mtl.config.locations import configs_directory
from mtl.config.run import RunConfig
from mtl.config.sampling import SAMPLINGS, SCHEDULES
from mtl.config.weighting import WEIGHTINGS

RECIPES = ("quickstart", "glue", "glue_minilm")
COMPONENTS = [name for name in shipped_names() if "/" in name]
KINDS = {"sampling": SAMPLINGS, "weighting": WEIGHTINGS, "encoder": ENCODERS, "sampling.schedule": SCHEDULES}


def _keys(document: dict[str, Any], *parents: str) -> set[str]:
    found = set()
    for key, value in document.items():
        found.add(".".join((*parents, key)))
        if isinstance(value, dict):
            found |= _keys(value, *parents, key)
    return found


def test_base_says_what_the_types_say_and_names_every_key() -> None:
    config = load_config([], ["tasks=[mini]"])
    assert config == RunConfig(tasks=("mini",))
    assert _keys(read_yaml(configs_directory() / "base.yaml")) | {"tasks"} == _keys(config.model_dump())


def test_every_key_of_base_is_explained(repository: Path) -> None:
    lines = (repository / "configs" / "base.yaml").read_text(encoding="utf-8").splitlines()
    settings = [line for line in lines if line.partition("#")[0].partition(": ")[2].strip()]
    obvious = (
        "weight_decay",
        "beta1",
        "beta2",
        "epsilon",
        "tokens_per_batch",
        "save_predictions",
        "tensorboard",
        "keep",
    )
    blocks = ("single", "joint", "finetune", "task_overrides")
    unexplained = {line.partition(":")[0].strip() for line in settings if " # " not in line}
    assert unexplained <= {*obvious, *blocks}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("path", KINDS)
def test_every_kind_can_be_set_over_every_recipe(recipe: str, path: str) -> None:
    for kind in KINDS[path]:
        spelt_out = load_config(recipe, [f"{path}.kind={kind}"])
        assert spelt_out == load_config(recipe, [f"{path}={kind}"])
        found: Any = spelt_out
        for part in path.split("."):
            found = getattr(found, part)
        assert found.kind == kind
        if "." not in path:
            assert load_config(recipe, [f"joint.{path}={kind}"] if path != "encoder" else []).tasks


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_goes_over_every_recipe(component: str) -> None:
    for recipe in RECIPES:
        changed = read_yaml(configs_directory() / f"{component}.yaml")
        config = load_config([recipe, component]).model_dump()
        alone = load_config([component], ["tasks=[mini]"]).model_dump()
        for key in set(changed) & {"sampling", "weighting"}:
            assert config[key] == alone[key]


def test_every_recipe_has_its_own_run_directory() -> None:
    assert [load_config(recipe).out for recipe in RECIPES] == [f"runs/{recipe}" for recipe in RECIPES]


def test_minilm_says_what_it_was_trained_on() -> None:
    encoder = load_config("glue_minilm").encoder
    assert encoder == load_config(["glue", "encoder/minilm"]).encoder
    known = " ".join(encoder.known_training_data)
    assert all(corpus in known for corpus in ("MultiNLI", "Quora question pairs", "SQuAD"))
    assert load_config(["glue_minilm", "encoder/bert_base"]).encoder.known_training_data == ()


def test_glue_minilm_with_updates_is_one_joint_training() -> None:
    config = load_config("glue_minilm", ["data.root=somewhere", "training.updates=400"])
    assert config.stages == ("joint",)
    assert config.training.updates == 400
    assert config.joint == {}
