"""Embeddings of the native pass, and the gradient that is kept from update to update, against torch's own."""

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtl.models.kept_gradient import KeptGradient
from mtl.models.native.embeddings import summed_embeddings

ENTRIES, WIDTH, TOKENS, PADDING = 40, 6, 25, 3


def table(entries: int, padding: int | None, seed: int) -> nn.Embedding:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return nn.Embedding(entries, WIDTH, padding_idx=padding)


def drawn_ids(entries: int, seed: int) -> Tensor:
    return torch.randint(entries, (TOKENS,), generator=torch.Generator().manual_seed(seed))


def reference(words: nn.Embedding, ids: Sequence[Tensor]) -> Tensor:
    """The dense gradient of the sum over all passes of :func:`passed`, new each time."""
    total = torch.stack([words(each).pow(3).sum() for each in ids]).sum()
    [gradient] = torch.autograd.grad(total, [words.weight])
    return gradient


def passed(words: nn.Embedding, kept: KeptGradient, ids: Tensor) -> Tensor:
    """A loss that reads the words alone."""
    others = table(2, None, 5)
    nothing = torch.zeros_like(ids)
    inputs = {"input_ids": ids, "token_type_ids": nothing, "position_ids": nothing}
    summed = summed_embeddings(words, others, others, inputs, kept)
    return (summed - 2.0 * others.weight[0].detach()).pow(3).sum()


@pytest.mark.parametrize("padding", [None, PADDING])
def test_sum_and_gradients_equal_those_of_three_embeddings(padding: int | None) -> None:
    tables = [table(ENTRIES, padding, 1), table(2, None, 2), table(TOKENS, None, 3)]
    ids = [drawn_ids(ENTRIES, 1), drawn_ids(2, 2), torch.arange(TOKENS)]
    assert padding is None or (ids[0] == padding).any()
    inputs = dict(zip(("input_ids", "token_type_ids", "position_ids"), ids, strict=True))
    found = summed_embeddings(*tables, inputs, KeptGradient(tables[0].weight))
    expected = torch.stack(
        [F.embedding(each, part.weight, part.padding_idx) for each, part in zip(ids, tables, strict=True)]
    ).sum(0)
    torch.testing.assert_close(found, expected)
    weights = [part.weight for part in tables]
    gradients = [torch.autograd.grad(out.pow(3).sum(), weights) for out in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_one_memory_serves_update_after_update() -> None:
    words = table(ENTRIES, PADDING, 1)
    kept, memory = KeptGradient(words.weight), set()
    for step in range(4):
        kept.take_back()
        words.weight.grad = None
        ids = drawn_ids(ENTRIES, step)
        passed(words, kept, ids).backward()
        assert words.weight.grad is not None
        memory.add(words.weight.grad.data_ptr())
        torch.testing.assert_close(words.weight.grad, reference(words, [ids]))
        touched = kept.touched()
        assert touched is not None
        assert touched.numel() == ids.unique().numel() < ENTRIES
        torch.testing.assert_close(words.weight.grad[touched].norm(), words.weight.grad.norm())
    assert len(memory) == 1


def test_micro_batches_add_up_and_all_their_rows_are_cleared() -> None:
    words = table(ENTRIES, None, 1)
    kept = KeptGradient(words.weight)
    several = [drawn_ids(ENTRIES, seed) for seed in range(3)]
    for ids in several:
        passed(words, kept, ids).backward()
    assert words.weight.grad is not None
    torch.testing.assert_close(words.weight.grad, reference(words, several))
    touched = kept.touched()
    assert touched is not None
    torch.testing.assert_close(words.weight.grad[touched].norm(), words.weight.grad.norm())
    kept.take_back()
    assert not words.weight.grad.any()


def test_gradients_asked_for_at_once_share_no_memory() -> None:
    words = table(ENTRIES, None, 1)
    kept = KeptGradient(words.weight)
    several = [drawn_ids(ENTRIES, seed) for seed in range(2)]
    found = [torch.autograd.grad(passed(words, kept, ids), [words.weight])[0] for ids in several]
    for gradient, ids in zip(found, several, strict=True):
        torch.testing.assert_close(gradient, reference(words, [ids]))


def test_a_gradient_that_others_put_in_its_place_is_left_alone() -> None:
    words = table(ENTRIES, None, 1)
    kept = KeptGradient(words.weight)
    passed(words, kept, drawn_ids(ENTRIES, 0)).backward()
    words.weight.grad = torch.ones_like(words.weight)
    assert kept.touched() is None
    kept.take_back()
    assert words.weight.grad.all()
    words.weight.grad = None
    ids = drawn_ids(ENTRIES, 1)
    passed(words, kept, ids).backward()
    torch.testing.assert_close(words.weight.grad, reference(words, [ids]))
