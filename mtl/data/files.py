"""Where a split's file has to be, its bytes, and what to say where there is none."""

from pathlib import Path, PurePath

from mtl.errors import ConfigError, DataError
from mtl.tasks.spec import SplitSpec, TaskSpec


def split_part(spec: TaskSpec, split: str) -> SplitSpec:
    """The task's split of that name; ConfigError where there is none."""
    if split not in spec.splits:
        raise ConfigError(f"task {spec.name} has no split {split!r}; it has {', '.join(spec.splits)}")
    return spec.splits[split]


def file_path(spec: TaskSpec, part: SplitSpec, data_root: Path | None) -> Path | None:
    """Where the split's file has to be; None without a data root, and for rows that stand in no file."""
    if spec.reader in ("generated", "hub"):
        return None
    if spec.files_root is not None:
        return Path(spec.files_root) / Path(part.file).expanduser()
    relative = _in_data_root(spec, part)
    if ".." in relative.parts or relative.is_absolute():
        raise ConfigError(f"task {spec.name}: the file {relative} would lie outside the data root; name one inside it")
    return None if data_root is None else data_root / relative


def file_content(path: Path | None) -> bytes | None:
    """The bytes of the file; None where there is no such file. Other failures to read name the file and the cause."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its type and its permissions") from error


def missing_message(spec: TaskSpec, split: str, data_root: Path | None) -> str:
    """Both ways to get a split that is not here: as a file, and from the hub."""
    part = split_part(spec, split)
    message = f"{spec.name}, split {split}: "
    if spec.files_root is None:
        message += _official_file(spec, part, file_path(spec, part, data_root))
    elif spec.reader != "hub":
        message += (
            f"no such file: {file_path(spec, part, data_root)}. Paths in the task's definition are relative to "
            f"{spec.files_root}; mend the one under files."
        )
    if spec.hub is not None and part.hub is not None:
        configuration = f", configuration {spec.hub[1]}" if spec.hub[1] else ""
        also = "The same rows are" if spec.files_root is None else "its rows are"
        message += (
            f"{also} on the Hugging Face hub as {spec.hub[0]}{configuration}, split {part.hub}: with a network and "
            "without HF_HUB_OFFLINE they are fetched from there and kept; `mtl prepare` does so ahead of a run."
        )
        if spec.files_root is not None:
            message += " Or name files of your own in its definition: files: {train: ..., dev: ...} in place of hub."
    return message


def _in_data_root(spec: TaskSpec, part: SplitSpec) -> PurePath:
    return PurePath(spec.suite, spec.directory, part.file)


def _official_file(spec: TaskSpec, part: SplitSpec, path: Path | None) -> str:
    relative = _in_data_root(spec, part)
    found = "no data root is set" if path is None else f"no such file: {path}"
    return (
        f"{found}. Either place the official file at {path or PurePath('<data root>') / relative}, or set data.root "
        f"(or MTL_DATA_DIR) to a folder that holds {relative}. "
    )
