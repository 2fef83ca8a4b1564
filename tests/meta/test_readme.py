"""What the README tells a reader to type and to open exists."""

import re

import pytest
from package_sources import REPOSITORY

ROOTS = ("mtl", "tests", "configs", "experiments", "results", "scripts", ".ci")


@pytest.fixture(scope="module")
def readme() -> str:
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


def make_targets() -> set[str]:
    """The targets that the Makefile declares by name."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))


def code_spans(text: str) -> str:
    """Only what stands in backticks or in a fenced block, one span a line."""
    fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*fenced, *re.findall(r"`([^`\n]+)`", rest)])


def named_paths(text: str) -> set[str]:
    """The paths of this repository that the code spans name, and the relative targets of links."""
    roots = "|".join(re.escape(root) for root in ROOTS)
    in_code = re.findall(rf"(?<![\w./-])((?:{roots})/[\w./-]*)", code_spans(text))
    linked = [
        link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link and not link.startswith("mailto:")
    ]
    return {path.rstrip(".") for path in [*in_code, *linked]}


def test_install_and_quickstart_are_told_and_exist(readme: str) -> None:
    told = set(re.findall(r"\bmake ([a-z][a-z-]*)", code_spans(readme)))
    assert {"install", "quickstart"} <= told
    assert told <= make_targets()


def test_every_path_exists(readme: str) -> None:
    paths = named_paths(readme)
    assert paths, "the README has no map of the files"
    missing = sorted(path for path in paths if not (REPOSITORY / path).exists())
    assert not missing, f"the README names what is not there: {missing}"


def test_paths_are_found_where_they_stand() -> None:
    text = "See `mtl/cli.py`, [this](LICENSE), [that](https://example.org/a).\n```\nmtl/config/  typed\n```\nno mtl/x"
    assert named_paths(text) == {"mtl/cli.py", "mtl/config/", "LICENSE"}
