import pytest
from pydantic import TypeAdapter, ValidationError

from mtl.config.path_text import OutputPath, PathText

ADAPTER: TypeAdapter[str] = TypeAdapter(PathText)


@pytest.mark.parametrize(
    "path", ["runs/a b", "~/data", "org/model", "package:name", "x" * 255, "中" * 85, "/".join(["y" * 99] * 40)]
)
def test_possible_paths_stay_as_they_are(path: str) -> None:
    assert ADAPTER.validate_python(path) == path


@pytest.mark.parametrize(
    "path", ["", "a\0b", "~nobody-at-all/x", "x" * 256, "中" * 86, "runs/" + "x" * 256, "/".join(["y" * 99] * 41)]
)
def test_impossible_paths_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(path)


def test_the_home_of_an_output_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/of/mine")
    assert TypeAdapter(OutputPath).validate_python("~/runs") == "/of/mine/runs"
    assert ADAPTER.validate_python("~/model") == "~/model"
