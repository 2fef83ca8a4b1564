"""The JSON schema that editors use."""

import json
from pathlib import Path
from typing import Any

from mtl.config.problems import known_paths
from mtl.config.run import RunConfig
from mtl.config.schema import config_schema, schema_text


def test_the_committed_schema_is_current(repository: Path) -> None:
    committed = (repository / "configs" / "schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run `python -m mtl.config.schema`"


def _objects(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, list):
        return [found for item in part for found in _objects(item)]
    if not isinstance(part, dict):
        return []
    own = [part] if isinstance(part.get("properties"), dict) else []
    return own + [found for item in part.values() for found in _objects(item)]


def test_every_object_is_closed_and_requires_nothing() -> None:
    objects = _objects(config_schema())
    assert len(objects) > 20
    assert all(found["additionalProperties"] is False and "required" not in found for found in objects)


def test_every_key_is_described() -> None:
    names = {name for found in _objects(config_schema()) for name in found["properties"]}
    assert names == {path.rpartition(".")[2] for path in known_paths(RunConfig)}


def test_blocks_and_kinds_are_described() -> None:
    schema = config_schema()
    block = schema["$defs"]["StageBlock"]["properties"]
    assert schema["properties"]["joint"]["$ref"] == "#/$defs/StageBlock"
    assert "uniform" in block["sampling"]["anyOf"][0]["enum"]
    assert "seed" not in block
    assert "oneOf" not in json.dumps(schema)
