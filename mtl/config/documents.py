"""YAML files read as mappings of text: what a value means is decided by the field it is for, not by its looks."""

from pathlib import Path
from typing import Any

import yaml

from mtl.errors import ConfigError

LARGEST_FILE = 1 << 20
DEEPEST_NESTING = 32


class _TextLoader(yaml.SafeLoader):
    """A safe loader for which every scalar is text, except null, and which knows neither tags nor anchors.

    YAML 1.1 reads ``no`` as false and ``3e-4`` as text; typed validation does better when it is given the text itself.
    """

    depth = 0

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """The tag of a node without a tag of its own: text, list, mapping, or null for an unquoted null."""
        if kind is yaml.MappingNode:
            return "tag:yaml.org,2002:map"
        if kind is yaml.SequenceNode:
            return "tag:yaml.org,2002:seq"
        is_plain = implicit[0]
        return "tag:yaml.org,2002:null" if is_plain and value in ("", "~", "null") else "tag:yaml.org,2002:str"

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node, refused where it could name a type, repeat another node, or exhaust the stack."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None:
            raise _problem("anchors and aliases are not supported: write the value out", event)
        if getattr(event, "tag", None) is not None:
            raise _problem(f"tags such as {event.tag} are not supported: leave it out", event)
        if self.depth >= DEEPEST_NESTING:
            raise _problem(f"nested more than {DEEPEST_NESTING} levels deep", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _problem(text: str, where: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=where.start_mark)


def _construct_mapping(loader: _TextLoader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _problem("a key must be plain text", key_node)
        if key in mapping:
            raise _problem(f"the key {key} is set twice: leave one", key_node)
        value = loader.construct_object(value_node, deep=True)
        # YAML sees one key named "a:1" in {a:1}, which nobody means.
        if value is None and ":" in key and key_node.style is None:
            raise _problem(f"put a space after the colon in {key}", key_node)
        mapping[key] = value
    return mapping


def _construct_list(loader: _TextLoader, node: yaml.SequenceNode) -> list[Any]:
    return [loader.construct_object(item, deep=True) for item in node.value]


_TextLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_TextLoader.add_constructor("tag:yaml.org,2002:seq", _construct_list)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, all scalars as text and nulls as None; an empty file is an empty mapping.

    Raises ConfigError, with the file and line, for what is unreadable, larger than 1 MiB, no mapping, or uses a key
    twice, a tag, an anchor or an alias.
    """
    if "\0" in str(path):
        raise ConfigError(f"{path}: holds a NUL character, which no path has. Take it out.")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise ConfigError(f"{path}: {size} bytes is too large for a config file; {LARGEST_FILE} is the most.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
    document = parse_yaml(text, name=str(path))
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: line 1: a config file is a mapping, `key: value` on each line.")
    return document


def parse_yaml(text: str, *, name: str) -> Any:
    """The value of YAML text under the rules of :func:`read_yaml`; ``name`` is what errors call the text."""
    try:
        return _TextLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        problem = "; ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{name}: {line}{problem}.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: is not YAML: {error}.") from error
