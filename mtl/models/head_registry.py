"""From head settings to a head; a plug-in adds a kind by an entry of its own."""

from collections.abc import Callable
from typing import Any

from torch import nn

from mtl.config.encoder import HeadSettings
from mtl.errors import ConfigError
from mtl.models.heads import SequenceHead
from mtl.tasks.spec import TaskSpec

Factory = Callable[[TaskSpec, int, Any], nn.Module]
"""Takes the task, the encoder's width and the settings; makes a module that is a :class:`mtl.models.heads.Head`."""

HEAD_FACTORIES: dict[str, Factory] = {"sequence": SequenceHead}


def make_head(spec: TaskSpec, width: int, settings: HeadSettings) -> nn.Module:
    """The head of a task on an encoder of ``width``, not yet initialised."""
    if settings.kind not in HEAD_FACTORIES:
        raise ConfigError(f"head.kind {settings.kind!r} has no factory; known are {', '.join(sorted(HEAD_FACTORIES))}")
    return HEAD_FACTORIES[settings.kind](spec, width, settings)


def register_head(kind: str, factory: Factory) -> None:
    """Add a head under ``kind``; a kind that exists is refused."""
    if kind in HEAD_FACTORIES:
        raise ConfigError(f"a head called {kind!r} exists already; choose another name")
    HEAD_FACTORIES[kind] = factory
