"""The parts of `scripts/gpu_check.sh` that are Python: what it trains on, and the one file that it writes.

python experiments/gpu_check.py device               cuda or cpu, whichever torch finds
python experiments/gpu_check.py write WORK           a made-up task with GLUE's lengths, and its tokenizer
python experiments/gpu_check.py summary WORK OUT     OUT from what the steps left in WORK; exit code 1 if one failed
python experiments/gpu_check.py lengths DATA_ROOT    measure LENGTHS anew on GLUE's files
"""

import argparse
import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.data.tokenizer import load_tokenizer
from mtl.runtime.device import describe_hardware, git_commit, versions
from mtl.stages.datasets import load_task_data

# Mean tokens and the standard deviation of their logarithm: the training rows at hand of each task, under BERT's
# uncased word pieces, [CLS] and [SEP] included. `lengths` prints them.
LENGTHS = {
    "cola": (11.3, 0.33),
    "sst2": (13.3, 0.68),
    "mrpc": (53.2, 0.26),
    "stsb": (27.8, 0.42),
    "qqp": (30.7, 0.36),
    "mnli": (39.0, 0.48),
    "qnli": (49.1, 0.33),
    "rte": (70.2, 0.52),
    "wnli": (37.1, 0.37),
}
ROWS, DEV_ROWS, MOST_TOKENS = 18_000, 90, 128
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = 30_522
"""As many as BERT's, so that the embeddings have BERT's size."""
WARNING = "A check that the script works, on a CPU, with a tiny encoder: nothing here says how fast anything is."
_TAIL = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Do what is asked; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("device", "write", "summary", "lengths"))
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args(argv)
    match arguments.action, arguments.paths:
        case "device", []:
            print("cuda" if torch.cuda.is_available() else "cpu")
        case "write", [work]:
            write_task(work)
            write_tokenizer(work / "tokenizer")
        case "summary", [work, out]:
            document = summary(work)
            out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            print("\n".join([f"{out}: {len(document['problems'])} problems", *document["problems"]]))
            return 1 if document["problems"] else 0
        case "lengths", [root]:
            print_lengths(root)
        case _:
            parser.error("these are not the paths of this action")
    return 0


def drawn_lengths(rows: int, draws: np.random.Generator) -> np.ndarray:
    """Tokens of each row: tasks in turn, log-normal with the task's mean and spread, 3 to ``MOST_TOKENS``."""
    means, spreads = (np.resize(np.array(part), rows) for part in zip(*LENGTHS.values(), strict=True))
    # The mean of a log-normal is exp(centre + spread^2 / 2).
    lengths = np.exp(draws.normal(np.log(means) - spreads**2 / 2, spreads))
    return np.clip(np.rint(lengths), 3, MOST_TOKENS).astype(np.int64)


def write_task(work: Path) -> None:
    """``made.yaml`` with its rows: words drawn with frequencies like 1 / rank; the label is the first word's parity."""
    work.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(1)
    frequencies = 1.0 / np.arange(3, VOCABULARY - len(SPECIAL) + 3)
    for split, rows in (("train", ROWS), ("dev", DEV_ROWS)):
        lengths = drawn_lengths(rows, draws) - 2
        words = draws.choice(frequencies.size, size=int(lengths.sum()), p=frequencies / frequencies.sum())
        lines = ["text\tlabel"]
        for row in np.split(words, np.cumsum(lengths)[:-1]):
            lines.append(" ".join(f"w{word}" for word in row) + ("\todd" if row[0] % 2 else "\teven"))
        (work / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (work / "made.yaml").write_text(
        "name: made/lengths\nfiles: {train: train.tsv, dev: dev.tsv}\ntexts: [text]\nlabels: [even, odd]\n",
        encoding="utf-8",
    )


def write_tokenizer(directory: Path) -> None:
    """A tokenizer to which each of those words is one token."""
    names = [*SPECIAL, *(f"w{number}" for number in range(VOCABULARY - len(SPECIAL)))]
    backend = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", names.index("[CLS]")), ("[SEP]", names.index("[SEP]"))]
    )
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(tokenizer_object=backend, model_input_names=inputs, **special).save_pretrained(directory)


def summary(work: Path) -> dict[str, Any]:
    """Everything the steps found; ``problems`` names each that failed, and tests that a GPU left out."""
    kind = (work / "kind").read_text(encoding="utf-8").strip()
    steps = [_step(line, work) for line in (work / "steps.tsv").read_text(encoding="utf-8").splitlines()]
    tests = _tests(work / "tests.xml")
    problems = [f"step {step['name']}: exit code {step['exit_code']}" for step in steps if step["exit_code"]]
    if tests is None:
        problems.append("no test was run")
    elif kind == "cuda" and tests["skipped"]:
        problems.append(f"{tests['skipped']} tests were skipped on a GPU")
    return {
        "kind": kind,
        **({} if kind == "cuda" else {"warning": WARNING}),
        "problems": problems,
        "steps": steps,
        "tests": tests,
        "device": {**describe_hardware(), **_gpu()},
        "versions": versions(),
        "commit": git_commit(Path(__file__).parent),
        "bench": {
            path.stem.removeprefix("bench-"): _bench(json.loads(path.read_text(encoding="utf-8")), kind)
            for path in sorted(work.glob("bench-*.json"))
        },
    }


def _bench(report: dict[str, Any], kind: str) -> dict[str, Any]:
    """The report; from a rehearsal only what was run, lest anyone take its figures for speed."""
    if kind == "cuda":
        return report
    return {"sides": ["mtl", *report["against"]], "updates": report["setting"]["timed_updates"]}


def _step(line: str, work: Path) -> dict[str, Any]:
    """A step's record; of one that failed, the end of what it said. ``timeout`` ends with 124, or 137 by force."""
    name, code, seconds = line.split("\t")
    record: dict[str, Any] = {"name": name, "exit_code": int(code), "seconds": int(seconds)}
    if record["exit_code"]:
        record["output"] = (work / f"{name}.log").read_text(encoding="utf-8", errors="replace")[-_TAIL:]
    return record


def _tests(path: Path) -> dict[str, Any] | None:
    """Counts by outcome, and of each test that failed its name and last lines; None where pytest did not end."""
    if not path.is_file():
        return None
    suite = ElementTree.parse(path).getroot()[0]
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    failed = {
        f"{case.attrib['classname']}::{case.attrib['name']}": (result.text or "")[-_TAIL // 2 :]
        for case in suite.iter("testcase")
        for result in case
        if result.tag in ("failure", "error")
    }
    return {**counts, "failed": failed}


def _gpu() -> dict[str, Any]:
    if not torch.cuda.is_available():
        return {"cuda": None}
    properties = torch.cuda.get_device_properties(0)
    return {
        "cuda": torch.version.cuda,
        "capability": f"{properties.major}.{properties.minor}",
        "gpu_memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
    }


def print_lengths(root: Path) -> None:
    """Mean tokens and the spread of their logarithm, by GLUE task, without a limit that would cut rows."""
    config = load_config(["glue_minilm"], [f"data.root={root}", "tasks=[glue]", "data.max_length=512"])
    tokenizer = load_tokenizer(config.encoder)
    specs = [task_registry.get(name) for name in task_registry.expand(config.tasks)]
    for name, data in load_task_data(config, specs, tokenizer, lambda: None).items():
        lengths = data.train.lengths()
        spread = math.sqrt(float(np.log(lengths).var()))
        print(f"{name}: {lengths.size} rows, {lengths.mean():.1f} tokens, spread {spread:.2f}")


if __name__ == "__main__":
    sys.exit(main())
