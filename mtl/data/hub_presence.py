"""Which hub data sets were fetched before, told without a network and without loading a row."""

import json

from mtl.tasks.spec import TaskSpec


def fetched_rows(spec: TaskSpec, split: str) -> int | None:
    """Rows of the split in the cache of ``datasets``, which also serves them offline; None where it has none.

    Of several versions that is the newest, as for ``load_dataset``.
    """
    part = spec.splits[split]
    if spec.hub is None or part.hub is None:
        return None
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    *owner, name = spec.hub[0].split("/")
    folder = config.HF_DATASETS_CACHE / "___".join([*owner, camelcase_to_snakecase(name)])
    # Below a data set: configuration, version, hash of the builder.
    descriptions = sorted(
        folder.glob(f"{spec.hub[1] or '*'}/*/*/dataset_info.json"), key=lambda path: path.stat().st_mtime
    )
    if not descriptions:
        return None
    described = json.loads(descriptions[-1].read_text(encoding="utf-8"))
    rows = described.get("splits", {}).get(part.hub, {}).get("num_examples")
    return None if rows is None else int(rows)
