"""`mtl study`: every run of a study file, what is done left alone and what was broken off gone on with."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtl import api
from mtl.cli.arguments import Verb, declare_plugins, load_plugins, split_settings
from mtl.cli.study_text import outcome_text, plan_text
from mtl.config.documents import parse_yaml
from mtl.errors import ConfigError

if TYPE_CHECKING:
    from mtl.studies.spec import StudySpec

_LAUNCHERS = ("inline", "local", "slurm")


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="FILE | DIR | key=value",
        help="the study's file, or the directory of one that was begun, and settings for all of its runs, such as "
        "data.root=DIR",
    )
    new = parser.add_argument_group("a study without a file")
    new.add_argument("--from", action="append", default=[], dest="base", metavar="CONFIG", help="a config or recipe")
    new.add_argument(
        "--grid", action="append", default=[], metavar="key=a,b", help="values to try; several: all combinations"
    )
    new.add_argument("--seeds", metavar="N", help="number of seeds, or a list such as 11,12,13")
    parser.add_argument("--out", metavar="DIR", help="directory of the study (runs/NAME)")
    parser.add_argument("--launcher", choices=_LAUNCHERS, default="inline", help="where runs are carried out (inline)")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="local: runs at a time (as many as GPUs or cores allow)"
    )
    parser.add_argument("--runs-per-device", type=int, default=1, metavar="N", help="local: runs that share a GPU (1)")
    parser.add_argument(
        "--slurm", action="append", default=[], metavar="key=value", help="slurm: what jobs ask for, e.g. partition=gpu"
    )
    parser.add_argument("--retry-failed", action="store_true", help="try runs again that failed")
    parser.add_argument(
        "--reuse", action="append", default=[], metavar="DIR", help="copy runs that the study in DIR has finished"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the runs and how each stands; write nothing")
    declare_plugins(parser)


def _act(arguments: argparse.Namespace) -> int:
    load_plugins(arguments.plugin)
    for name in ("workers", "runs_per_device"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(arguments, name)}: at least one is needed")
    study, begun_in = _study(arguments)
    out = Path(arguments.out) if arguments.out else begun_in or Path(f"runs/{study.name}")
    if arguments.dry_run:
        print(plan_text(study, out), end="")
        return 0
    outcome = api.study(
        study,
        out,
        launcher=arguments.launcher,
        workers=arguments.workers,
        runs_per_device=arguments.runs_per_device,
        retry_failed=arguments.retry_failed,
        reuse=arguments.reuse,
        plugins=arguments.plugin,
    )
    print(outcome_text(study, out, outcome), end="", file=sys.stderr)
    return 1 if outcome.unfinished else 0


def _study(arguments: argparse.Namespace) -> "tuple[StudySpec, Path | None]":
    """The study that the command line means, and the directory that it was begun in where that is what it names."""
    from mtl.studies.spec import read_study, validate_study

    files, assignments = split_settings(arguments.settings)
    slurm = _pairs(arguments.slurm, "--slurm")
    begun_in: Path | None = None
    if arguments.base:
        if files:
            raise ConfigError(f"{files[0]} and --from both say what to run: give one of them")
        document = _sweep(arguments)
        study = validate_study(document, Path("command line"), assignments)
    else:
        if len(files) != 1 or arguments.grid or arguments.seeds is not None:
            raise ConfigError("give one study file, or --from CONFIG with --grid key=a,b and --seeds N")
        file, begun_in = _file_of(files[0])
        study = read_study(file, assignments)
    if not slurm:
        return study, begun_in
    asked = study.slurm.model_dump(exclude_unset=True) | slurm
    # Validated anew, as part of a whole study, for messages that name the key.
    document = study.model_dump(mode="json", exclude_unset=True) | {"slurm": asked}
    return validate_study(document, Path("--slurm")), begun_in


def _file_of(word: str) -> tuple[Path, Path | None]:
    """The file of the study that ``word`` names, and the directory that the study was begun in where it names that."""
    from mtl.studies.study_files import StudyDirectory

    path = Path(word)
    if path.is_dir():
        kept = StudyDirectory(path).study
        if not kept.is_file():
            raise ConfigError(f"{word} is a directory that no study was begun in; name a study's file")
        return kept, path
    if not path.suffix and not path.exists():
        raise ConfigError(
            f"there is no file {word}: a study is a YAML file such as experiments/mini_sampling.yaml; of a recipe "
            f"alone, it is --from {word} with --grid key=a,b and --seeds N"
        )
    return path, None


def _sweep(arguments: argparse.Namespace) -> dict[str, Any]:
    if not arguments.grid or arguments.seeds is None:
        raise ConfigError("--from needs --grid key=a,b (what to vary) and --seeds N (how often)")
    grid = {
        key: parse_yaml(f"[{values}]", name=f"--grid {key}") for key, values in _pairs(arguments.grid, "--grid").items()
    }
    seeds = arguments.seeds
    keys = " and ".join(grid)
    what = f"What {'does' if len(grid) == 1 else 'do'} {keys} change"
    return {
        "name": Path(arguments.out).absolute().name if arguments.out else "sweep",
        "question": f"{what}, starting from {' and '.join(arguments.base)}?",
        "base": list(arguments.base),
        "grid": grid,
        "seeds": seeds if seeds.isdecimal() else seeds.split(","),
    }


def _pairs(words: Sequence[str], flag: str) -> dict[str, str]:
    """The words ``key=value`` of a flag that may be repeated."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise ConfigError(f"{flag} {word}: is not key=value")
        if key in pairs:
            raise ConfigError(f"{flag} names {key} twice: leave one")
        pairs[key] = value
    return pairs


VERB = Verb(
    "study",
    "carry out every run of a study that is not done: arms, seeds, one question",
    "mtl study experiments/mini_sampling.yaml --launcher local --workers 2 --out runs/mini_sampling",
    _declare,
    _act,
)
