"""The optimiser's compiled step against torch's AdamW on the same gradients: weights and moments."""

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from mtl.config.encoder import SequenceHeadSettings
from mtl.config.training import OptimizerSettings
from mtl.models.kernels import compiled
from mtl.models.kernels.optimizer_calls import SteppedParameter, adamw_step, square_sum
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.training.compiled_step import CompiledStep
from mtl.training.optimizer import Optimizer, named_parameters
from tests.training.toy_training import SCORES, TASKS, VOCABULARY, WIDTH, toy_bert, toy_model, toy_training

STEPS = 6
ON, OFF = torch.zeros(()), torch.ones(())
TABLE = "encoder/embeddings.word_embeddings.weight"


class Side(NamedTuple):
    """A model and its optimiser."""

    model: MultitaskModel
    optimizer: Optimizer

    def weights(self) -> dict[str, Tensor]:
        return {name: parameter.detach().clone() for name, parameter in named_parameters(self.model).items()}


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def side(**settings: Any) -> Side:
    model = toy_model(encoder=wrap_model(toy_bert(), "native"))
    heads = {task: SequenceHeadSettings(learning_rate=7e-3) for task in TASKS}
    return Side(model, Optimizer(model, OptimizerSettings(learning_rate=1e-2, **settings), heads, STEPS, []))


def draw(step: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(step))


def take(one: Side, step: int, *, dense: bool = False, skip: Tensor = ON) -> Tensor:
    """A step on drawn gradients: of a few rows of the table (all: ``dense``); one head is absent now and then."""
    one.optimizer.zero()
    [kept] = one.model.encoder.kept_gradients
    for number, (name, parameter) in enumerate(named_parameters(one.model).items()):
        if name == TABLE and not dense:
            ids = torch.randint(0, VOCABULARY // 2, (7,), generator=torch.Generator().manual_seed(step))
            parameter.grad = kept.of(draw(step, 7, WIDTH), ids)
        elif step % 2 or not name.startswith(SCORES):
            parameter.grad = draw(100 * step + number, *parameter.shape)
    norm = one.optimizer.norm()
    one.optimizer.step(step, skip, norm)
    return norm


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=2e-5, atol=1e-7, msg=lambda said, name=name: f"{name}: {said}"
        )


def assert_equal_sides(ours: Side, reference: Side) -> None:
    assert_same(ours.weights(), reference.weights())
    assert_same(ours.optimizer.state_tensors(), reference.optimizer.state_tensors())


@pytest.mark.parametrize("settings", [{}, {"clip_norm": None}, {"weight_decay": 0.0}, {"beta1": 0.5, "epsilon": 1e-3}])
@pytest.mark.usefixtures("threads")
def test_steps_equal_those_of_torch(settings: dict[str, Any], compiled_library: ctypes.CDLL, monkeypatch: Any) -> None:
    ours, reference = side(**settings), side(**settings)
    for step in range(STEPS):
        monkeypatch.setattr(compiled, "_loaded", compiled_library)
        norm = take(ours, step)
        monkeypatch.setattr(compiled, "_loaded", None)
        torch.testing.assert_close(norm, take(reference, step))
    assert_equal_sides(ours, reference)
    # The upper half of the table had no gradient: nothing but its decay, the same to the bit.
    assert torch.equal(ours.weights()[TABLE][VOCABULARY // 2 :], reference.weights()[TABLE][VOCABULARY // 2 :])


@pytest.mark.parametrize("torch_first", [True, False])
def test_steps_of_both_kinds_follow_each_other(
    torch_first: bool, compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed, reference = side(), side()
    for step in range(STEPS):
        by_torch = (step // 2) % 2 == (0 if torch_first else 1)
        monkeypatch.setattr(compiled, "_loaded", None if by_torch else compiled_library)
        take(mixed, step, dense=step == 3)
        monkeypatch.setattr(compiled, "_loaded", None)
        take(reference, step, dense=step == 3)
    assert_equal_sides(mixed, reference)


def test_a_loaded_state_goes_on_to_the_bit(compiled_library: ctypes.CDLL) -> None:
    whole, first, second = side(), side(), side()
    for step in range(STEPS):
        take(whole, step)
    for step in range(3):
        take(first, step)
    for name, parameter in named_parameters(second.model).items():
        parameter.data.copy_(first.weights()[name])
    second.optimizer.load_state_tensors(first.optimizer.state_tensors())
    for step in range(3, STEPS):
        take(second, step)
    assert all(torch.equal(value, second.weights()[name]) for name, value in whole.weights().items())
    assert_same(second.optimizer.state_tensors(), whole.optimizer.state_tensors())


def test_a_skipped_step_changes_nothing(compiled_library: ctypes.CDLL) -> None:
    one = side()
    take(one, 0)
    weights, state = one.weights(), {name: value.clone() for name, value in one.optimizer.state_tensors().items()}
    take(one, 1, skip=OFF)
    assert all(torch.equal(value, weights[name]) for name, value in one.weights().items())
    assert all(torch.equal(value, state[name]) for name, value in one.optimizer.state_tensors().items())


def test_a_step_is_seen_by_whoever_kept_a_parameter(compiled_library: ctypes.CDLL) -> None:
    one = side()
    weight = named_parameters(one.model)["toy/pairs/output.weight"]
    product = (weight * weight).sum()
    take(one, 0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 16_384, 40_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.usefixtures("threads")
def test_any_size_and_type_of_gradient(count: int, dtype: torch.dtype, compiled_library: ctypes.CDLL) -> None:
    gradient, start = draw(1, count).to(dtype), draw(2, count)
    expected = nn.Parameter(start.clone())
    expected.grad = gradient.float() / 3.0
    adamw = torch.optim.AdamW([expected], lr=0.1, weight_decay=0.2, fused=True)
    state = {name: torch.zeros(count) for name in ("mean", "square")}
    ours, copy, taken = start.clone(), torch.zeros(count, dtype=torch.bfloat16), torch.zeros(())
    one = SteppedParameter(ours, gradient, **state, taken=taken, rate=0.1, decay=0.2, copy=copy)
    for _ in range(3):
        adamw.step()
        adamw_step(compiled_library, [one], (0.9, 0.999), 1e-8, 3.0)
    torch.testing.assert_close(ours, expected.detach(), rtol=1e-5, atol=1e-6)
    assert torch.equal(copy, ours.bfloat16())
    assert float(taken) == 3.0
    assert square_sum(compiled_library, [gradient]) == pytest.approx(float(gradient.double().square().sum()), rel=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.2])
@pytest.mark.parametrize("width", [1, 13, 40])
@pytest.mark.usefixtures("threads")
def test_copies_are_written_in_rows_that_were_never_reached(
    width: int, decay: float, compiled_library: ctypes.CDLL
) -> None:
    rows = 9
    reached = (torch.arange(rows) % 3 == 0).to(torch.uint8)
    gradient = draw(1, rows, width) * reached[:, None]
    written = torch.zeros(rows, width, dtype=torch.bfloat16)

    def stepped(**further: Tensor) -> SteppedParameter:
        moments = {name: torch.zeros(rows, width) for name in ("mean", "square")}
        parts = {"parameter": draw(0, rows, width), "gradient": gradient, "taken": torch.zeros(())}
        return SteppedParameter(**parts, **moments, **further, rate=0.1, decay=decay)

    whole, by_rows = stepped(), stepped(copy=written, reached=reached)
    adamw_step(compiled_library, [whole, by_rows], (0.9, 0.999), 1e-8, 1.0)
    assert torch.equal(by_rows.parameter, whole.parameter)
    assert torch.equal(written, by_rows.parameter.bfloat16())


def test_sums_of_squares_do_not_depend_on_threads(compiled_library: ctypes.CDLL, threads: int) -> None:
    tensors = [draw(seed, 30_000 + seed) for seed in range(4)]
    found = square_sum(compiled_library, tensors)
    torch.set_num_threads(2)
    assert square_sum(compiled_library, tensors) == found
    assert square_sum(compiled_library, []) == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_not_finite_is_found_wherever_it_is(
    bad: float, dtype: torch.dtype, compiled_library: ctypes.CDLL
) -> None:
    for place in (0, 63, 64, 79):
        tensor = draw(0, 80).to(dtype)
        tensor[place] = bad
        found = square_sum(compiled_library, [draw(1, 9), tensor])
        assert found != found or found == float("inf")


def test_other_tensors_are_refused_before_c_reads_them(compiled_library: ctypes.CDLL) -> None:
    def stepped(**changed: Tensor) -> SteppedParameter:
        parts = {name: torch.zeros(4, 6) for name in ("parameter", "gradient", "mean", "square")}
        return SteppedParameter(**{**parts, "taken": torch.zeros(()), **changed}, rate=0.1, decay=0.0)

    for changed, said in (
        ({"parameter": torch.zeros(4, 6).double()}, "float64"),
        ({"gradient": torch.zeros(4, 6).half()}, "float16"),
        ({"gradient": torch.zeros(6, 4).t()}, "without gaps"),
        ({"mean": torch.zeros(4, 5)}, r"\(4, 5\) where it reads \(4, 6\)"),
        ({"taken": torch.zeros((), dtype=torch.int64)}, "int64"),
        ({"copy": torch.zeros(4, 6)}, "float32 where it reads torch.bfloat16"),
        ({"reached": torch.zeros(6, dtype=torch.uint8)}, r"\(6,\) where it reads \(4,\)"),
    ):
        with pytest.raises(TypeError, match=said):
            adamw_step(compiled_library, [stepped(**changed)], (0.9, 0.999), 1e-8, 1.0)
    with pytest.raises(TypeError, match="int64"):
        square_sum(compiled_library, [torch.zeros(3, dtype=torch.int64)])


def test_parameters_with_gaps_are_left_to_torch() -> None:
    assert CompiledStep.fits([nn.Parameter(torch.zeros(4, 6))])
    assert not CompiledStep.fits([nn.Parameter(torch.zeros(6, 4).t())])
    assert not CompiledStep.fits([nn.Parameter(torch.zeros(4, 6).double())])


def test_working_weights_train_as_weights_rounded_at_each_use(
    compiled_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for keeps in (True, False):
        encoder = wrap_model(toy_bert(dropout=0.1), "native")
        if not keeps:
            encoder.working_weights = None
        toy = toy_training(model=toy_model(encoder=encoder), dropout=0.1, precision="bf16", micro_batches=2)
        losses = torch.stack([result.losses for result in toy.run(0, 4)])
        found.append((losses, toy.weights()))
        used = encoder.working_weights
        assert used is None or len(used._written) == 2 * 2 * 6
    (losses, weights), (others, reference) = found
    assert torch.equal(losses, others)
    assert all(torch.equal(value, reference[name]) for name, value in weights.items())
