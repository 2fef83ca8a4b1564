"""Settings that come in kinds: a registry of types, chosen between by the field ``kind``.

A registry is a plain dictionary, so a plug-in adds a kind by an assignment before a config is validated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mtl.config.settings import Settings


@dataclass(frozen=True)
class OneOf:
    """Annotation for a field that holds one of the registered kinds.

    The text ``uniform`` is short for ``{kind: uniform}``. The union is read from the registry whenever the model that
    holds the field is (re)built, see :func:`mtl.config.run.rebuild_models`.
    """

    registry: Mapping[str, type[Settings]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {kind: handler.generate_schema(settings) for kind, settings in self.registry.items()}
        union = core_schema.tagged_union_schema(choices, discriminator="kind")
        return core_schema.no_info_before_validator_function(_expand_shorthand, union)


def _expand_shorthand(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value
