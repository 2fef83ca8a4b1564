"""The Python of `scripts/gpu_check.sh`: the made-up task is what it says, and the summary hides no failure."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import gpu_check
from mtl.data.tokenizer import tokenizer_from_path

PASSED = '<testsuites><testsuite tests="2" failures="0" errors="0" skipped="{skipped}"></testsuite></testsuites>'
FAILED = (
    '<testsuites><testsuite tests="2" failures="1" errors="0" skipped="0"><testcase classname="a" name="b">'
    '<failure message="m">it was 3</failure></testcase></testsuite></testsuites>'
)


def test_lengths_have_the_means_of_the_tasks() -> None:
    lengths = gpu_check.drawn_lengths(90_000, np.random.default_rng(1))
    assert lengths.max() <= gpu_check.MOST_TOKENS
    for number, (task, (mean, _)) in enumerate(gpu_check.LENGTHS.items()):
        # Rows over the limit are cut, which costs the longest task most.
        assert lengths[number :: len(gpu_check.LENGTHS)].mean() == pytest.approx(mean, rel=0.07), task


def test_a_word_is_a_token(tmp_path: Path) -> None:
    gpu_check.write_tokenizer(tmp_path)
    tokenizer = tokenizer_from_path(tmp_path)
    assert tokenizer.vocabulary_size == gpu_check.VOCABULARY
    [encoding] = tokenizer.encode(["w0 w30516 w7"], None, 16)
    assert encoding.tokens == ["[CLS]", "w0", "w30516", "w7", "[SEP]"]
    assert "[UNK]" not in encoding.tokens


def written(work: Path, *, kind: str, steps: str, tests: str | None) -> Path:
    """A directory as the steps leave it."""
    (work / "kind").write_text(f"{kind}\n")
    (work / "steps.tsv").write_text(steps)
    report = {"mtl": {"mfu": 0.5}, "against": {"hf-tuned": {}}, "setting": {"timed_updates": 3}}
    (work / "bench-tiny.json").write_text(json.dumps(report))
    if tests is not None:
        (work / "tests.xml").write_text(tests)
    return work


def test_summary_of_what_went_well(tmp_path: Path) -> None:
    work = written(tmp_path, kind="cpu", steps="tests\t0\t3\n", tests=PASSED.format(skipped=2))
    assert gpu_check.main(["summary", str(work), str(tmp_path / "out.json")]) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["problems"] == []
    assert document["warning"] == gpu_check.WARNING
    assert document["steps"] == [{"name": "tests", "exit_code": 0, "seconds": 3}]
    assert document["bench"] == {"tiny": {"sides": ["mtl", "hf-tuned"], "updates": 3}}
    assert document["versions"]["torch"]


@pytest.mark.parametrize(
    ("kind", "steps", "tests", "problem"),
    [
        ("cpu", "bench-tiny\t124\t150\n", PASSED.format(skipped=0), "step bench-tiny: exit code 124"),
        ("cpu", "tests\t1\t3\n", FAILED, "step tests: exit code 1"),
        ("cpu", "tests\t124\t3\n", None, "no test was run"),
        ("cuda", "tests\t0\t3\n", PASSED.format(skipped=2), "2 tests were skipped on a GPU"),
    ],
)
def test_summary_of_what_went_wrong(tmp_path: Path, kind: str, steps: str, tests: str | None, problem: str) -> None:
    work = written(tmp_path, kind=kind, steps=steps, tests=tests)
    (tmp_path / f"{steps.split(chr(9))[0]}.log").write_text("what it said")
    assert gpu_check.main(["summary", str(work), str(tmp_path / "out.json")]) == 1
    document = json.loads((tmp_path / "out.json").read_text())
    assert problem in document["problems"]
    if kind == "cuda":
        assert document["bench"]["tiny"]["mtl"] == {"mfu": 0.5}
        assert "warning" not in document
    else:
        assert document["steps"][0]["output"] == "what it said"
    if tests == FAILED:
        assert document["tests"]["failed"] == {"a::b": "it was 3"}
