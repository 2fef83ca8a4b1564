"""Settings given on the command line as ``path.to.key=value``."""

import re
from typing import Any

from mtl.config.documents import parse_yaml
from mtl.errors import ConfigError

_PART = re.compile(r"""(?:"(?P<quoted>[^"]+)"|(?P<bare>[^."]+))(?:\.(?!$)|$)""")
_HOW = "Write key=value, e.g. training.updates=400"


def parse_assignment(text: str) -> tuple[tuple[str, ...], Any]:
    """The path and the value of ``a.b=value``, cut at the first ``=``.

    A value is text, None for ``null``, or YAML where it is in brackets, braces or quotes. A part of the path that has
    dots in it is quoted: ``task_overrides."my.suite/task".training.updates=5``. Raises ConfigError for anything else.
    """
    path, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text}: is neither a config nor an assignment. {_HOW}.")
    return parse_path(path.strip(), text), _parse_value(value.strip(), text)


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The document that sets only ``path`` to ``value``."""
    for part in reversed(path[1:]):
        value = {part: value}
    return {path[0]: value}


def parse_path(path: str, text: str) -> tuple[str, ...]:
    """The keys of a dotted path; ``text`` is what errors say it stands in. Raises ConfigError for what is no path."""
    parts: list[str] = []
    position = 0
    while position < len(path) or not parts:
        match = _PART.match(path, position)
        if match is None:
            raise ConfigError(f"{text}: {path!r} is not a path of keys joined by dots. {_HOW}.")
        parts.append(match["quoted"] or match["bare"])
        position = match.end()
    return tuple(parts)


def _parse_value(value: str, text: str) -> Any:
    if not value:
        raise ConfigError(f"{text}: has no value. Write =null to unset it.")
    if value == "null":
        return None
    if value[0] in "[{" or (value[0] in "\"'" and value[-1] == value[0] and len(value) > 1):
        return parse_yaml(value, name=text)
    return value
