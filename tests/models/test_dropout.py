"""Keyed dropout: the hash, its rates and independence, and that a mask belongs to its example alone."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tiny_models import TASKS, make_store, mixed_batch, mixed_source, tiny_model, whole_plan
from torch import Tensor, nn

from mtl.data.batches import BatchSource, PackedBatch
from mtl.models.dropout import (
    DropoutKey,
    KeyedDropout,
    current_dropout,
    drop,
    drop_attention,
    dropout_context,
    example_keys,
    packed_dropout,
    packed_token_keys,
    replace_dropout,
)
from mtl.models.load import wrap_model
from mtl.random_streams import stream_key

KEY = DropoutKey(seed=11, step=5)
Words = npt.NDArray[np.uint32]


def mix(values: Words) -> Words:
    """The finaliser written anew on unsigned words, whose multiplication wraps by itself."""
    # At least one dimension, because numpy warns where a scalar overflows.
    values = np.array(values, dtype=np.uint32, ndmin=1)
    values ^= values >> np.uint32(16)
    values *= np.uint32(0x7FEB352D)
    values ^= values >> np.uint32(15)
    values *= np.uint32(0x846CA68B)
    return values ^ (values >> np.uint32(16))


def low_word(key: int) -> Words:
    return np.array([key % 2**32], dtype=np.uint32)


def expected_keys(batch: PackedBatch, key: DropoutKey) -> Words:
    """Token keys, computed one token at a time."""
    keys = []
    update = low_word(stream_key(key.seed, "dropout", key.step))
    lengths = iter(batch.layout.sequence_lengths.tolist())
    for slot, sequences in zip(batch.slots.tolist(), batch.layout.sequences_per_example.tolist(), strict=True):
        for within in range(sequences):
            length = next(lengths)
            sequence = mix(mix(low_word(slot) + update) + low_word(within))
            keys += [mix(sequence + low_word(position)) for position in range(length)]
    return np.concatenate(keys)


def expected_keep(row_keys: Words, groups: int, features: int, rate: float, site_key: int) -> npt.NDArray[np.bool_]:
    """Kept elements (rows, groups, features): the low half of a word decides the even feature, the high the odd."""
    feature = np.arange(features, dtype=np.uint32)
    numbers = (np.arange(groups, dtype=np.uint32)[:, None] << np.uint32(20)) + feature // np.uint32(2) + np.uint32(1)
    # The finaliser without its last step, which is its own inverse on 32 bits.
    words = mix(mix(row_keys ^ low_word(site_key))[:, None, None] + mix(numbers))
    words = words ^ (words >> np.uint32(16))
    halves = np.where(feature % 2 == 0, words & np.uint32(0xFFFF), words >> np.uint32(16)).astype(np.uint16)
    return halves.view(np.int16) >= round(rate * 2**16) - 2**15


def several_sequences() -> PackedBatch:
    source = BatchSource({"toy/choice": make_store([[4, 2, 9], [3, 5, 1], [6, 6, 6]], 3)})
    return replace(source.evaluation_batch("toy/choice", np.arange(3)), slots=torch.tensor([7, 0, 2**20]))


def ones_dropped(keys: Tensor, features: int, rate: float = 0.5, site_key: int = 99) -> Tensor:
    return drop(torch.ones(*keys.shape, features), rate, keys, site_key)


@pytest.mark.parametrize("batch", [mixed_batch(), several_sequences()], ids=["mixed", "several sequences"])
def test_token_keys_equal_an_independent_hash(batch: PackedBatch) -> None:
    keys = packed_token_keys(batch, KEY)
    assert keys.dtype == torch.int32
    np.testing.assert_array_equal(keys.numpy().view(np.uint32), expected_keys(batch, KEY))
    update = low_word(stream_key(KEY.seed, "pooled dropout", KEY.step))
    expected = mix(batch.slots.numpy().astype(np.uint32) + update)
    np.testing.assert_array_equal(example_keys(batch, KEY).numpy().view(np.uint32), expected)


def test_golden_keys() -> None:
    """Pinned: a change would make resumed runs differ from uninterrupted ones without notice."""
    assert mix(np.array([1, 2, 0xFFFFFFFF], dtype=np.uint32)).tolist() == [1753845952, 3507691905, 1734902346]
    assert packed_token_keys(several_sequences(), KEY)[:5].tolist() == [
        499965135,
        1870072949,
        -719625663,
        -843112956,
        -630130664,
    ]


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("features", [1, 7, 8])
def test_masks_equal_an_independent_hash(rate: float, features: int) -> None:
    keys = torch.tensor([0, 1, -1, 2**31 - 1, -(2**31), 12345], dtype=torch.int32)
    words = keys.numpy().view(np.uint32)
    site_key = 0xFEDCBA98
    kept = ones_dropped(keys, features, rate, site_key) != 0
    np.testing.assert_array_equal(kept.numpy(), expected_keep(words, 1, features, rate, site_key)[:, 0])
    attention = drop_attention(torch.ones(2, 4, 3, features), rate, keys.view(2, 3), site_key) != 0
    expected = expected_keep(words, 4, features, rate, site_key).reshape(2, 3, 4, features).swapaxes(1, 2)
    np.testing.assert_array_equal(attention.numpy(), expected)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("half", [0, 1])
def test_rows_features_and_their_rectangles_are_uncorrelated(rate: float, half: int) -> None:
    """Masks come from sums of a row's and a feature's hash; sums must not show in them."""
    keys = packed_token_keys(long_batch(40, 50), KEY)
    kept = (ones_dropped(keys, 1024, rate)[:, half::2] != 0).double() - (1.0 - rate)
    scores = kept / (rate * (1.0 - rate)) ** 0.5
    rows, features = scores.shape
    by_feature = (scores.T @ scores).fill_diagonal_(0.0) / rows**0.5
    by_row = (scores @ scores.T).fill_diagonal_(0.0) / features**0.5
    # Of 131,000 and 2,000,000 pairs; skewed where the rate is small.
    assert float(by_feature.abs().max()) < 6.5
    assert float(by_row.abs().max()) < 8.0
    rectangles = [
        float((pair * pair.roll(shift, 1)).mean()) * scores.numel() ** 0.5
        for pair in (scores * scores.roll(1, 0), scores * scores.roll(7, 0))
        for shift in (1, 2, 5, 16)
    ]
    assert max(map(abs, rectangles)) < 4.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5])
def test_rate_and_mean(rate: float, dtype: torch.dtype) -> None:
    keys = packed_token_keys(long_batch(32, 64), KEY)
    inputs = torch.rand(keys.numel(), 501, generator=torch.Generator().manual_seed(0)).to(dtype) + 1
    dropped = drop(inputs, rate, keys, 5)
    share = float((dropped == 0).double().mean())
    assert abs(share - rate) < 4 * (rate * (1 - rate) / inputs.numel()) ** 0.5
    change = (dropped.double() - inputs.double()).flatten()
    assert abs(float(change.mean())) < 4 * float(change.std()) / inputs.numel() ** 0.5
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (inputs.float() / (1 - rate))[kept].to(dtype), rtol=1e-4, atol=0.02)


def long_batch(examples: int, length: int) -> PackedBatch:
    source = BatchSource({"toy/long": make_store([[length]] * examples, 0)})
    return source.evaluation_batch("toy/long", np.arange(examples))


def correlation(first: Tensor, second: Tensor) -> float:
    """Correlation of two masks in standard errors."""
    pair = torch.stack([first.flatten(), second.flatten()]).double()
    return float(torch.corrcoef(pair)[0, 1]) * pair.shape[1] ** 0.5


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_neighbours_are_uncorrelated(rate: float) -> None:
    batch, shape = long_batch(32, 64), (32, 64, 128)
    keys = packed_token_keys(batch, KEY)
    mask = ones_dropped(keys, 128, rate).view(shape)
    for distance in (1, 2, 16):
        assert abs(correlation(mask[:, :, distance:], mask[:, :, :-distance])) < 4, "features"
        assert abs(correlation(mask[:, distance:], mask[:, :-distance])) < 4, "positions"
        assert abs(correlation(mask[distance:], mask[:-distance])) < 4, "slots"
        # A sum of key and position must not give neighbours shifted copies of each other.
        assert abs(correlation(mask[distance:, 1:], mask[:-distance, :-1])) < 4, "slots and positions"
        assert abs(correlation(mask[:, distance:, 2:], mask[:, :-distance, :-2])) < 4, "positions and features"
        later = packed_token_keys(batch, replace(KEY, step=KEY.step + distance))
        assert abs(correlation(mask, ones_dropped(later, 128, rate).view(shape))) < 4, "steps"
        seeded = packed_token_keys(batch, replace(KEY, seed=KEY.seed + distance))
        assert abs(correlation(mask, ones_dropped(seeded, 128, rate).view(shape))) < 4, "seeds"
        assert abs(correlation(mask, ones_dropped(keys, 128, rate, 99 + distance).view(shape))) < 4, "sites"


def test_heads_queries_and_keys_are_uncorrelated() -> None:
    keys = packed_token_keys(long_batch(8, 64), KEY).view(8, 64)
    mask = drop_attention(torch.ones(8, 4, 64, 64), 0.5, keys, 99)
    assert abs(correlation(mask[:, 1:], mask[:, :-1])) < 4
    assert abs(correlation(mask[:, :, 1:], mask[:, :, :-1])) < 4
    assert abs(correlation(mask[..., 1:], mask[..., :-1])) < 4
    assert abs(correlation(mask, mask.transpose(2, 3))) < 4 * 2**0.5


def keys_by_example(batch: PackedBatch) -> dict[tuple[int, int], Tensor]:
    lengths = batch.layout.sequence_lengths.tolist()
    named = zip(batch.example_task.tolist(), batch.example_ids.tolist(), strict=True)
    return dict(zip(named, packed_token_keys(batch, KEY).split(lengths), strict=True))


def test_keys_do_not_depend_on_order_offset_or_company() -> None:
    source = mixed_source()
    plan = whole_plan(source)
    whole = keys_by_example(source.batch(plan, np.arange(plan.rows.size)))
    for slots in (np.arange(plan.rows.size)[::-1], np.array([4, 1, 8]), *np.arange(plan.rows.size)[:, None]):
        for example, keys in keys_by_example(source.batch(plan, slots)).items():
            assert torch.equal(keys, whole[example])
    assert len({tuple(keys.tolist()) for keys in whole.values()}) == sum(source.stores[task].rows for task in TASKS)


def test_sequences_of_one_example_drop_differently() -> None:
    keys = packed_token_keys(several_sequences(), KEY)
    assert len(set(keys.tolist())) == keys.numel()


def dropout_module(rate: float = 0.5) -> KeyedDropout:
    return KeyedDropout(rate, "layer.0.dropout").train()


def test_a_module_used_twice_drops_two_patterns_and_repeats_them() -> None:
    module, batch = dropout_module(), mixed_batch()
    inputs = torch.ones(1, batch.tokens, 10)
    with dropout_context(packed_dropout(batch, KEY)):
        first, second = module(inputs), module(inputs)
    with dropout_context(packed_dropout(batch, KEY)):
        assert torch.equal(module(inputs), first)
        assert torch.equal(module(inputs), second)
    assert abs(correlation(first, second)) < 4


def test_another_site_drops_another_pattern() -> None:
    batch = mixed_batch()
    inputs = torch.ones(1, batch.tokens, 10)
    with dropout_context(packed_dropout(batch, KEY)):
        first, second = dropout_module()(inputs), KeyedDropout(0.5, "layer.1.dropout").train()(inputs)
    assert abs(correlation(first, second)) < 4


def test_rows_of_no_example_are_keyed_on_the_update() -> None:
    """Relative position embeddings: the same in every micro-batch of an update, another mask in the next."""
    module, source, inputs = dropout_module(), mixed_source(), torch.ones(41, 12)
    plan = whole_plan(source)

    def dropped(key: DropoutKey, slots: list[int]) -> Tensor:
        with dropout_context(packed_dropout(source.batch(plan, np.array(slots)), key)):
            return torch.stack([module(inputs), module(inputs)])

    first = dropped(KEY, [0, 1, 2])
    assert torch.equal(first, dropped(KEY, [5, 8]))
    for other in (replace(KEY, step=KEY.step + 1), replace(KEY, seed=KEY.seed + 1)):
        assert abs(correlation(first, dropped(other, [0, 1, 2]))) < 4
    assert abs(correlation(first[0], first[1])) < 4
    assert 0.4 < float((first == 0).double().mean()) < 0.6


def test_evaluation_and_rate_zero_change_nothing() -> None:
    inputs = torch.randn(1, 4, 6)
    assert dropout_module().eval()(inputs) is inputs
    assert dropout_module(0.0)(inputs) is inputs
    keys = torch.arange(4, dtype=torch.int32)[None]
    assert torch.equal(drop(inputs, 0.0, keys, 3), inputs)


def test_training_without_a_context_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"layer\.0\.dropout"):
        dropout_module()(torch.ones(1, 2, 3))


def test_replacing_keeps_rates_and_names_sites_by_path() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.3)), nn.Dropout(0.2))
    replace_dropout(model)
    found = {module.site: module.p for module in model.modules() if isinstance(module, KeyedDropout)}
    assert found == {"1.0": 0.3, "2": 0.2}
    assert not [module for module in model.modules() if isinstance(module, nn.Dropout)]


def test_replacing_keeps_the_mode() -> None:
    for training in (True, False):
        replaced = nn.Sequential(nn.Dropout(0.3)).train(training)
        replace_dropout(replaced)
        assert [module.training for module in replaced] == [training]


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("bert", {f"encoder.layer.{layer}.attention.self": 1 for layer in (0, 1)}),
        ("modernbert", {f"layers.{layer}.attn": 1 for layer in (0, 1)}),
        # One set of weights for both layers: one site, used twice.
        ("albert", {"encoder.albert_layer_groups.0.albert_layers.0.attention": 2}),
    ],
)
@pytest.mark.parametrize("batching", ["packed", "padded"])
def test_attention_sites_are_module_paths(family: str, expected: dict[str, int], batching: str) -> None:
    encoder = wrap_model(tiny_model(family), batching).train()
    calls: dict[str, int] = {}

    def record(*_: object) -> None:
        context = current_dropout()
        assert context is not None
        calls.update(context.calls)

    encoder.model.register_forward_hook(record)
    encoder(mixed_batch(), KEY)
    paths = {path for path, module in encoder.model.named_modules() if isinstance(module, KeyedDropout)}
    assert {site: count for site, count in calls.items() if site not in paths} == expected
