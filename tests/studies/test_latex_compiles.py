"""Tables are compiled by a real LaTeX, and nothing of them runs into the margin."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from study_directories import ARMS, write_planned_study

from mtl import api
from mtl.studies.table_layout import read_layout

DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
%s
\end{document}
"""


def compiled(folder: Path, *fragments: str) -> str:
    """What pdflatex says of a document of the fragments; the test is skipped where there is none."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("no pdflatex is installed: Debian's packages are texlive-latex-base and texlive-latex-recommended")
    if not subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).stdout:
        pytest.skip("LaTeX has no booktabs: Debian's package is texlive-latex-recommended")
    (folder / "table.tex").write_text(DOCUMENT % "\n".join(fragments), encoding="utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=100)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said
    assert (folder / "table.pdf").read_bytes().startswith(b"%PDF")
    return said


def words(folder: Path) -> str:
    """The text of the compiled document; the test is skipped where nothing can read it."""
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext is installed: Debian's package is poppler-utils")
    done = subprocess.run(["pdftotext", "-layout", "table.pdf", "-"], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def test_tables_of_a_study_fit_the_page(tmp_path: Path) -> None:
    study = write_planned_study(tmp_path / "study")
    keys = ["names.tuned=T_5 {50%} & #1 ~ ^ \\\\ $x$ < > ±", "transpose=true", "spread=interval", "parts=scores"]
    whole, part = (api.table(study, layout="tex", shown=read_layout(None, chosen)) for chosen in ([], keys))
    said = compiled(tmp_path, whole, part)
    assert "Overfull" not in said
    text = words(tmp_path)
    assert "Differences to alone, in points" in text
    assert re.search(r"T.5 \{50%\} & #1", text)
    cell = re.search(r"glue/rte +accuracy +([\d.]+)", text)
    assert cell is not None
    assert cell[1] in api.table(study, layout="md")


def test_many_arms_are_made_smaller(tmp_path: Path) -> None:
    arms = {f"{letter}n_arm_with_a_long_name": [f"sampling.cap={cap}"] for cap, letter in enumerate("bcdefgh", 5)}
    study = write_planned_study(tmp_path / "study", arms={**ARMS, **arms}, seeds=1, primary=None)
    assert "Overfull" not in compiled(tmp_path, api.table(study, layout="tex"))


def test_blocks_without_a_baseline(tmp_path: Path) -> None:
    study = write_planned_study(tmp_path / "study", seeds=2)
    said = compiled(tmp_path, api.table(study / "runs", layout="tex"))
    assert "Overfull" not in said
