"""Working weights: rounded parameters, used as the optimiser wrote them only while nothing has changed since."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from mtl.models import ops
from mtl.models.working_weights import WorkingWeights

WIDTH = 8


def layers() -> list[nn.Linear]:
    return [nn.Linear(WIDTH, width) for width in (4, 6, 5)]


def written(parts: list[nn.Linear]) -> WorkingWeights:
    """As an optimiser leaves them; every copy is 7, to be told from a rounded parameter."""
    working = WorkingWeights([parts])
    assert working.of(parts) is None
    for parameter in nn.ModuleList(parts).parameters():
        place = working.copy_of(parameter)
        assert place is not None
        place.fill_(7.0)
    working.were_written(list(nn.ModuleList(parts).parameters()))
    return working


def test_side_by_side_in_any_run_of_layers() -> None:
    parts = layers()
    working = WorkingWeights([parts])
    assert working.of(parts) is None
    parameters = list(nn.ModuleList(parts).parameters())
    for parameter in parameters:
        place = working.copy_of(parameter)
        assert place is not None
        place.copy_(parameter.detach())
    working.were_written(parameters)
    for chosen in (parts, parts[1:], parts[:1]):
        found = working.of(chosen)
        assert found is not None
        assert torch.equal(found[0], torch.cat([part.weight.detach().bfloat16() for part in chosen]))
        assert torch.equal(found[1], torch.cat([part.bias.detach().bfloat16() for part in chosen]))


def test_nothing_is_written_that_nobody_has_asked_for() -> None:
    parts = layers()
    working = WorkingWeights([parts])
    assert working.copy_of(parts[0].weight) is None
    working.were_written([parts[0].weight])
    assert working.of(parts[:1]) is None
    assert working.copy_of(parts[0].weight) is not None
    assert working.copy_of(nn.Linear(2, 2).weight) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda parts, working: nn.init.ones_(parts[0].bias),
        lambda parts, working: parts[0].load_state_dict(nn.Linear(WIDTH, 4).state_dict()),
        lambda parts, working: setattr(parts[0].weight, "data", torch.ones(4, WIDTH)),
        lambda parts, working: working.were_written([]),
    ],
    ids=["changed", "loaded", "replaced", "stepped by torch"],
)
def test_not_taken_after(change: Callable[[list[nn.Linear], WorkingWeights], object]) -> None:
    parts = layers()
    working = written(parts)
    assert working.of(parts[:1]) is not None
    change(parts, working)
    assert working.of(parts[:1]) is None


def test_a_copied_model_has_weights_of_its_own() -> None:
    parts = layers()
    working, others = copy.deepcopy((written(parts), parts))
    assert working.of(others) is None


def test_evaluation_and_fp32_read_the_parameters() -> None:
    parts = layers()
    working = written(parts)
    inputs = torch.randn(3, WIDTH)
    torch.testing.assert_close(ops.linear_side_by_side(inputs, parts, working), ops.linear_side_by_side(inputs, parts))
    low = inputs.bfloat16()
    assert not torch.equal(ops.linear_side_by_side(low, parts, working), ops.linear_side_by_side(low, parts))
    with torch.no_grad():
        assert torch.equal(ops.linear_side_by_side(low, parts, working), ops.linear_side_by_side(low, parts))


@pytest.mark.parametrize("copied", [False, True])
def test_a_backward_pass_after_the_step_is_refused(copied: bool) -> None:
    parts = layers()
    working = written(parts)
    if copied:
        # As every training has it: on a copy of the encoder that a run starts from.
        working, parts = copy.deepcopy((working, parts))
        working.were_written(list(nn.ModuleList(parts).parameters()))
    out = ops.linear_side_by_side(torch.randn(3, WIDTH).bfloat16().requires_grad_(), parts, working)
    working.were_written(list(nn.ModuleList(parts).parameters()))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()  # type: ignore[no-untyped-call]
