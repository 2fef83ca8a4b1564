"""Evaluation and tokenising under the clock: what each turn holds."""

import pytest
from tiny_bench import ACCEPTABILITY, ENTAIL, counting_clock, tiny_config, tiny_start

from mtl.bench.evaluation import equal_parts, measure_evaluation
from mtl.bench.tokenising import bare_tokens, measure_tokenising
from mtl.data.sources import read_rows
from mtl.data.tokenizer import load_tokenizer
from mtl.stages.build import plan_updates
from mtl.tasks import registry

TASKS = (ENTAIL, ACCEPTABILITY)


def test_equal_parts_add_up() -> None:
    assert equal_parts(10, 3) == [3, 3, 4]
    assert sum(equal_parts(7, 10)) == 7


def test_each_turn_trains_a_part_and_evaluates_every_dev_split() -> None:
    start = tiny_start(8, tasks=TASKS)
    # Each of the two is timed by two readings, so a section takes one second by this clock.
    found = measure_evaluation(start, 2, 2, clock=counting_clock())
    stores = [store for task in TASKS for store in start.context.data[task].dev.values()]
    assert found.rows == sum(store.rows for store in stores)
    assert found.tokens == sum(int(store.lengths().sum()) for store in stores)
    assert found.evaluation_tokens_per_second == (found.tokens, found.tokens)
    planner, _ = plan_updates(start.context, start.unit.tasks, start.unit.settings)
    tokens = [int(planner.plan(step).lengths.sum()) for step in range(8)]
    assert found.training_tokens_per_second == (sum(tokens[2:5]), sum(tokens[5:]))


def test_both_ways_of_tokenising_read_the_same_texts() -> None:
    config = tiny_config(tasks=TASKS)
    found = measure_tokenising(config, 2, clock=counting_clock())
    rows = [read_rows(registry.get(task), "train", None) for task in TASKS]
    assert found.rows == sum(map(len, rows))
    tokenizer = load_tokenizer(config.encoder)
    lengths = [len(each.ids) for part in rows for each in tokenizer.encode(part.texts[0], _second(part.texts), 48)]
    assert found.tokens == sum(lengths) == sum(bare_tokens(tokenizer, part.texts, 48) for part in rows)
    assert (found.store_seconds, found.bare_seconds) == ((1.0, 1.0), (1.0, 1.0))


def _second(texts: list[list[str]]) -> list[str] | None:
    return texts[1] if len(texts) > 1 else None


@pytest.mark.parametrize("length", [8, 48])
def test_texts_are_cut_alike(length: int) -> None:
    found = measure_tokenising(tiny_config(f"data.max_length={length}"), 1)
    assert found.tokens <= length * found.rows
