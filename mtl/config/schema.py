"""The JSON schema of config files, for editors that complete and check them while they are written."""

import json
from pathlib import Path
from typing import Any

from mtl.config.merge import FIELDS_WITH_KINDS
from mtl.config.run import RunConfig, StageSettings


def config_schema() -> dict[str, Any]:
    """The schema of one file, which sets part of a config: no key is required, an unknown one is an error.

    A field that comes in kinds may also be the name of one. Stage blocks and task overrides are described as well.
    """
    schema = RunConfig.model_json_schema()
    definitions = schema["$defs"]
    block = {name: schema["properties"][name] for name in StageSettings.model_fields}
    definitions["StageBlock"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": block,
        "description": "Changes for one stage or task; what is left out stays as it is.",
    }
    reference = {"$ref": "#/$defs/StageBlock"}
    for stage in ("single", "joint", "finetune"):
        schema["properties"][stage] = {**reference, "default": {}}
    schema["properties"]["task_overrides"] = {"type": "object", "additionalProperties": reference, "default": {}}
    for part in (schema, *definitions.values()):
        _describe_a_layer(part)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "mtl config"}


def _describe_a_layer(part: dict[str, Any]) -> None:
    """Change the schema of whole settings, in place, into that of a layer merged over others."""
    part.pop("required", None)
    for name, value in part.get("properties", {}).items():
        choices = value.pop("oneOf", None)
        if choices is None or name not in FIELDS_WITH_KINDS:
            continue
        # A layer may leave the kind out, and then fit several.
        kinds = list(value.pop("discriminator")["mapping"])
        value["anyOf"] = [{"enum": kinds}, *choices]


def schema_text() -> str:
    """The schema as it is written to ``configs/schema.json``."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write ``configs/schema.json`` of a checkout."""
    path = Path(__file__).resolve().parents[2] / "configs" / "schema.json"
    path.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
