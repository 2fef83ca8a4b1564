"""A run's settings from config files, shipped recipes and assignments."""

import difflib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from mtl.config.documents import read_yaml
from mtl.config.locations import configs_directory
from mtl.config.merge import merge
from mtl.config.overrides import dropped
from mtl.config.problems import describe_problems
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig, Stage
from mtl.config.task_files import anchored, with_definitions
from mtl.config.values import nested, parse_assignment
from mtl.errors import ConfigError

STAGES: tuple[Stage, ...] = get_args(Stage)
_AGAIN = ", and counts with its default: set it again with that kind"
_logger = logging.getLogger("mtl")


def load_config(sources: str | Path | Sequence[str | Path], overrides: Sequence[str] = ()) -> RunConfig:
    """The validated settings: ``configs/base.yaml``, the sources merged left to right, the overrides last.

    A source is a path to a YAML file, or the name of a shipped file (``glue``, ``sampling/pals``). An override is
    ``key=value``, see :func:`mtl.config.values.parse_assignment`. Stage blocks and task overrides are validated as
    well, in every stage. Raises one ConfigError that lists every problem found.
    """
    return validate_config(read_document(sources, overrides))


def read_document(
    sources: str | Path | Sequence[str | Path], overrides: Sequence[str | Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The merged settings before validation, all values still text; task files are replaced by what they say.

    An override is ``key=value``, or a document of settings. A task file's path is relative to the folder of the config
    that names it, on the command line (and in a document, where it was not made absolute) to the working directory.
    Warns of overrides that another one drops, see :func:`dropped_overrides`.
    """
    document, lost = _laid_over(sources, overrides)
    for line in lost:
        _logger.warning("%s", line)
    return _without_emptied_blocks(with_definitions(document))


def dropped_overrides(
    sources: str | Path | Sequence[str | Path], overrides: Sequence[str | Mapping[str, Any]]
) -> list[str]:
    """A line for each override that is dropped because another kind is named after it, or in a stage's block."""
    return _laid_over(sources, overrides)[1]


def _laid_over(
    sources: str | Path | Sequence[str | Path], overrides: Sequence[str | Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """The merged document, and what was lost of the overrides on the way."""
    directory = configs_directory()
    document = read_yaml(directory / "base.yaml")
    for source in [sources] if isinstance(sources, str | Path) else sources:
        path = _find(source, directory)
        document = merge(document, anchored(read_yaml(path), path))
    asked: dict[str, Any] = {}
    lost = []
    for override in overrides:
        layer = nested(*parse_assignment(override)) if isinstance(override, str) else override
        merged = merge(document, anchored(layer, Path("command line")))
        lost += [
            f"{key} is dropped by the kind that is named after it{_AGAIN}" for key in dropped(asked, document, merged)
        ]
        asked, document = merge(asked, layer), merged
    for stage in STAGES:
        block = document.get(stage)
        merged = merge(document, block) if isinstance(block, Mapping) else document
        lost += [f"{key} is dropped by the kind that {stage} names{_AGAIN}" for key in dropped(asked, document, merged)]
    return document, lost


def validate_config(document: dict[str, Any]) -> RunConfig:
    """The settings that a merged document means, or a ConfigError that lists all that is wrong with it."""
    try:
        config = RunConfig.model_validate(document)
    except ValidationError as error:
        problems = describe_problems(error)
    else:
        problems = list(_block_problems(config))
        if not problems:
            return config
    raise ConfigError("The configuration is not valid:\n" + "\n".join(f"  {problem}" for problem in problems))


def shipped_names() -> list[str]:
    """What can be named as a source without a path, sorted."""
    directory = configs_directory()
    return sorted(path.relative_to(directory).with_suffix("").as_posix() for path in directory.rglob("*.yaml"))


def _find(source: str | Path, directory: Path) -> Path:
    path = Path(source)
    if isinstance(source, Path) or path.suffix in (".yaml", ".yml"):
        return path
    names = shipped_names()
    if source in names:
        return directory / f"{source}.yaml"
    # Unlike a Path, this is also false for what is too long to be a file's name.
    if os.path.isfile(path):
        return path
    near = difflib.get_close_matches(source, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(names)}; a path ends in .yaml."
    raise ConfigError(f"{source}: is not a shipped recipe. {hint}")


def _without_emptied_blocks(document: dict[str, Any]) -> dict[str, Any]:
    """A block that was set to null, or a group in it, changes nothing any more."""
    kept = dict(document)
    for stage in STAGES:
        kept[stage] = _without_nulls(kept.get(stage))
    overrides = _without_nulls(kept.get("task_overrides"))
    if isinstance(overrides, dict):
        overrides = {task: _without_nulls(block) for task, block in overrides.items()}
    kept["task_overrides"] = overrides
    return kept


def _without_nulls(block: Any) -> Any:
    if isinstance(block, dict):
        return {key: value for key, value in block.items() if value is not None}
    return {} if block is None else block


def _block_problems(config: RunConfig) -> Iterator[str]:
    """What is wrong in stage blocks, and where those are right, in task overrides; each problem once."""
    seen: set[str] = set()
    for stage in STAGES:
        found = _problems_of(config, stage, None, prefix=stage)
        if not found:
            for task in config.task_overrides:
                found += _problems_of(config, stage, task, prefix=f"task_overrides.{task}")
        yield from (problem for problem in found if problem not in seen)
        seen.update(found)


def _problems_of(config: RunConfig, stage: Stage, task: str | None, *, prefix: str) -> list[str]:
    try:
        resolve_stage(config, stage, task)
    except ValidationError as error:
        return describe_problems(error, prefix=prefix)
    return []
