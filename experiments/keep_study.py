"""Keep a study under results/: what tables are made from, its comparison, and its pictures with their numbers.

    python experiments/keep_study.py STUDY results/NAME

``STUDY`` is the directory that `mtl study` wrote, or results/NAME itself, to write comparison and pictures again. Of
each run its result, environment, task sequences and predictions are kept; weights, logs and the place of the data are
left out.
"""

import argparse
import shutil
from pathlib import Path

import yaml

from mtl import api
from mtl.studies.compared import compared
from mtl.studies.pictures.picture import Source
from mtl.studies.pictures.registry import REGISTRY, drawings
from mtl.studies.pictures.save import picture_csv, picture_svg
from mtl.studies.study_files import StudyDirectory
from mtl.studies.study_layout import StudyLayoutName

KEPT = ("result.json", "environment.json", "stage.json", "sequence.npz")
LAYOUTS: dict[str, StudyLayoutName] = {"comparison.md": "md", "comparison.csv": "csv"}
PAGE_WIDTH = 6.8


def main() -> None:
    """Copy what is kept, then write what is made from it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.study.resolve() != arguments.out.resolve():
        copy_files(arguments.study, arguments.out)
    for name, text in made_from(arguments.out).items():
        path = arguments.out / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


def copy_files(study: Path, out: Path) -> None:
    """The study's file, and of its runs what is kept."""
    out.mkdir(parents=True, exist_ok=True)
    document = yaml.safe_load((study / "study.yaml").read_text(encoding="utf-8"))
    document.get("overrides", {}).get("data", {}).pop("root", None)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    (out / "study.yaml").write_text(text, encoding="utf-8")
    additions = StudyDirectory(study).additions
    if additions.is_file():
        shutil.copyfile(additions, out / additions.name)
    for path in sorted((study / "runs").rglob("*")):
        if path.name in KEPT or path.suffix == ".parquet":
            place = out / path.relative_to(study)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def made_from(out: Path) -> dict[str, str]:
    """By name, the text of every file that is made from a kept study: comparison, and pictures with their numbers."""
    texts = {name: api.table(out, layout=layout) for name, layout in LAYOUTS.items()}
    found = compared([out])
    for name, drawing in drawings(Source(found.arms, found.table))[0].items():
        texts[f"pictures/{name}.csv"] = picture_csv(drawing.points)
        texts[f"pictures/{name}.svg"] = picture_svg(drawing.points, REGISTRY[name].draw, PAGE_WIDTH)
    return texts


if __name__ == "__main__":
    main()
