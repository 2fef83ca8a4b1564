"""What YAML files may hold, and that every scalar in them stays text."""

from pathlib import Path

import pytest

from mtl.config.documents import DEEPEST_NESTING, LARGEST_FILE, read_yaml
from mtl.errors import ConfigError


def _written(directory: Path, text: str) -> Path:
    path = directory / "some.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_scalar_is_text_except_null(tmp_path: Path) -> None:
    text = (
        "a: 3e-4\nb: no\nc: 0x10\nd: 2020-01-01\ne: null\nf: ~\ng:\nh: 'null'\n"
        "i: [1, on]\nj: {1: 2.0}\nk: NULL\n<<: x\n"
    )
    assert read_yaml(_written(tmp_path, text)) == {
        "a": "3e-4",
        "b": "no",
        "c": "0x10",
        "d": "2020-01-01",
        "e": None,
        "f": None,
        "g": None,
        "h": "null",
        "i": ["1", "on"],
        "j": {"1": "2.0"},
        "k": "NULL",
        "<<": "x",
    }


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert read_yaml(_written(tmp_path, "# only a comment\n")) == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "the key c is set twice"),
        ("a: 1\nb: &x 1\n", 2, "anchors"),
        ("a: *x\n", 1, "anchors and aliases"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, "tags such as"),
        ("a: !!int 3\n", 1, "tags such as"),
        ("a: !mine 3\n", 1, "tags such as"),
        ("- a\n- b\n", 1, "a config file is a mapping"),
        ("just text\n", 1, "a config file is a mapping"),
        ("a: 1\n? [x, y]\n: 2\n", 2, "a key must be plain text"),
        ("a: 1\n~: 2\n", 2, "a key must be plain text"),
        ("a: {b:1}\n", 1, "put a space after the colon in b:1"),
        ("a: 1\n\nb: [1, 2\n", 4, "flow sequence"),
        ("a: 1\n---\nb: 2\n", 2, "document"),
    ],
)
def test_what_is_refused_names_the_file_and_the_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}: line {line}: ")
    assert problem in str(caught.value)


def test_nesting_is_limited(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="levels deep"):
        read_yaml(_written(tmp_path, "a: " + "[" * 5000))
    allowed = DEEPEST_NESTING - 2
    read_yaml(_written(tmp_path, "a: " + "[" * allowed + "]" * allowed))


def test_unreadable_files_are_config_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "missing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
    with pytest.raises(ConfigError, match="is not YAML"):
        read_yaml(_written(tmp_path, "a: \x00\n"))
    with pytest.raises(ConfigError, match="too large"):
        read_yaml(_written(tmp_path, "#" * (LARGEST_FILE + 1)))
