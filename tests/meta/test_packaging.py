"""A built package holds all that a checkout holds, and declares all that it imports."""

import configparser
import re
import sys

from package_sources import PACKAGE, REPOSITORY, all_modules, imports, imports_at_load

# Where the name to import is not the name to install; pydantic pins the core that belongs to it.
DISTRIBUTIONS = {"pydantic_core": "pydantic", "sklearn": "scikit-learn", "yaml": "pyyaml"}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    return parser


def entries(section: str, key: str) -> list[str]:
    """The lines of a list in setup.cfg, without comments."""
    lines = settings().get(section, key).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def requirements(section: str, key: str) -> set[str]:
    """The names of the distributions that a list of requirements asks for, in lower case."""
    return {re.split(r"[<>=!~\[; ]", line)[0].lower() for line in entries(section, key)}


def third_party(names: list[str]) -> set[str]:
    """The distributions behind imported names that neither Python nor this package brings."""
    roots = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"mtl"}
    return {DISTRIBUTIONS.get(root, root.replace("_", "-").lower()) for root in roots}


def test_every_package_is_listed() -> None:
    on_disk = {module.name for module in all_modules() if module.is_package}
    assert set(entries("options", "packages")) == on_disk | {"mtl.recipes"}


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_recipe_is_packaged() -> None:
    recipes = REPOSITORY / "configs"
    patterns = entries("options.package_data", "mtl.recipes")
    packaged = {path for pattern in patterns for path in recipes.glob(pattern)}
    assert {path for path in recipes.rglob("*") if path.is_file()} == packaged
    assert entries("options", "package_dir") == ["mtl.recipes = configs"]


def test_every_import_is_declared() -> None:
    required = requirements("options", "install_requires")
    extras = [key for key in settings()["options.extras_require"] if key != "dev"]
    optional = set().union(*(requirements("options.extras_require", extra) for extra in extras))
    undeclared = {}
    for module in all_modules():
        at_load = third_party([name for name, _ in imports_at_load(module)]) - required
        anywhere = third_party([name for name, _ in imports(module)]) - required - optional
        if at_load | anywhere:
            undeclared[module.name] = sorted(at_load | anywhere)
    assert not undeclared, f"declare in setup.cfg; an extra may only be imported inside a function: {undeclared}"


def test_the_constraint_allows_what_is_declared() -> None:
    constraint = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)$", constraint, flags=re.MULTILINE))
    assert set(pinned) <= requirements("options", "install_requires")
