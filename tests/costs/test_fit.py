"""A machine's profile: known coefficients are found again, and predictions are sums."""

import numpy as np
import pytest

from mtl.costs.fit import fit_machine, fit_nonnegative
from mtl.costs.machine import CaseMeasure, MachineKey, find_profile, fixed_bytes, save_profile
from mtl.costs.work import WORK_NAMES, Work
from mtl.errors import DataError

KEY = MachineKey(processor="a processor", cores_usable=2, threads=1, torch="2", precision="auto", device="auto")
TRUE = {
    "flops": 1e-11, "elements": 5e-8, "scores": 2e-8, "masks": 1e-9, "parameters": 3e-9, "layers": 1e-3,
    "masked_layers": 2e-3, "passes": 5e-3,
}  # fmt: skip
MEMORY = {"base": 5e8, "elements": 60.0, "scores": 5.0, "sizes": 1e7}


def case(number: int) -> CaseMeasure:
    """A measurement without noise of a machine with the coefficients above."""
    draws = np.random.default_rng(number)
    work = {name: float(draws.uniform(0.1, 2.0) / TRUE[name] / 100) for name in WORK_NAMES}
    kept = {
        "base": 1.0,
        "elements": float(draws.uniform(1e5, 1e7)),
        "scores": float(draws.uniform(1e6, 1e8)),
        "sizes": float(draws.integers(5, 60)),
    }
    passing = {"base": 1.0, "widest": float(draws.uniform(1e5, 1e7)), "scores": 0.0}
    fixed = float(draws.uniform(1e7, 1e9))
    return CaseMeasure(
        name=str(number),
        training=work,
        training_seconds=sum(TRUE[name] * value for name, value in work.items()),
        evaluation=work,
        evaluation_seconds=sum(TRUE[name] * work[name] / 3 for name in ("flops", "layers")),
        fixed_bytes=fixed,
        training_memory=kept,
        training_bytes=fixed + sum(MEMORY[name] * value for name, value in kept.items()),
        evaluation_memory=passing,
        evaluation_bytes=fixed + 5e8 + 2.0 * passing["widest"],
    )


def test_known_coefficients_are_found_again() -> None:
    profile = fit_machine(KEY, [case(number) for number in range(12)], precision="bf16", threads=1, device="cpu")
    assert profile.training.coefficients == pytest.approx(TRUE, rel=1e-6)
    assert profile.training.worst == pytest.approx(0.0, abs=1e-9)
    assert profile.evaluation.coefficients["flops"] == pytest.approx(TRUE["flops"] / 3)
    assert profile.evaluation.coefficients["parameters"] == pytest.approx(0.0, abs=1e-15)
    assert profile.training_memory.coefficients == pytest.approx(MEMORY)
    assert profile.evaluation_memory.coefficients["widest"] == pytest.approx(2.0)


def test_a_golden_prediction() -> None:
    profile = fit_machine(KEY, [case(number) for number in range(12)], precision="bf16", threads=1, device="cpu")
    work = Work(
        flops=1e11, elements=1e6, scores=1e6, masks=1e7, parameters=1e7, layers=6, masked_layers=6, passes=1
    )  # fmt: skip
    # 1 + 0.05 + 0.02 + 0.01 + 0.03 + 0.006 + 0.012 + 0.005, by hand.
    assert profile.training_seconds(work) == pytest.approx(1.133, rel=1e-6)
    assert profile.fixed_bytes(1000, 10) == 16 * 1010 + 4 * 1000
    assert fixed_bytes("cuda", 1000, 10) == 16 * 1010


def test_a_peak_that_training_had_reached_tells_nothing_of_evaluation() -> None:
    cases = [case(number) for number in range(12)]
    cases = [each.model_copy(update={"training_bytes": each.evaluation_bytes - 1}) for each in cases]
    high = [each.model_copy(update=dict.fromkeys(("training_bytes", "evaluation_bytes"), 9e9)) for each in cases[:3]]
    found = {
        device: fit_machine(KEY, [*cases, *high], precision="bf16", threads=1, device=device).evaluation_memory
        for device in ("cpu", "cuda")
    }
    assert found["cpu"].coefficients["widest"] == pytest.approx(2.0)
    # A GPU forgets the peak of the training.
    assert found["cuda"].coefficients["widest"] != pytest.approx(2.0, rel=0.1)


def test_no_coefficient_is_negative() -> None:
    fit = fit_nonnegative(["a", "b"], [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}], [2.0, 1.0])
    assert min(fit.coefficients.values()) >= 0.0
    assert fit.worst > 0.1


def test_a_profile_is_found_by_its_machine_alone(tmp_path) -> None:
    profile = fit_machine(KEY, [case(number) for number in range(12)], precision="bf16", threads=1, device="cpu")
    path = save_profile(profile, tmp_path)
    assert find_profile(KEY, tmp_path) == profile
    assert find_profile(KEY.model_copy(update={"threads": 2}), tmp_path) is None
    path.write_text("{}")
    with pytest.raises(DataError, match="measure anew"):
        find_profile(KEY, tmp_path)
