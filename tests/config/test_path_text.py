import pytest
from pydantic import TypeAdapter, ValidationError

from mtl.config.path_text import PathText

ADAPTER: TypeAdapter[str] = TypeAdapter(PathText)


@pytest.mark.parametrize(
    "path", ["runs/a b", "~/data", "org/model", "package:name", "x" * 255, "中" * 85, "/".join(["y" * 99] * 40)]
)
def test_possible_paths_stay_as_they_are(path: str) -> None:
    assert ADAPTER.validate_python(path) == path


@pytest.mark.parametrize("path", ["a\0b", "x" * 256, "中" * 86, "runs/" + "x" * 256, "/".join(["y" * 99] * 41)])
def test_impossible_paths_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(path)
