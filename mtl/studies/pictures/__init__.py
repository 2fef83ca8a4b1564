"""Pictures of a study, drawn from result files only; the numbers of each lie beside it as CSV."""

PICTURES = {
    "forest": "differences to the baseline with their intervals",
    "cost": "score against training operations",
    "sweep": "scores of small and large tasks against the sampling temperature",
}
"""Every picture, and what it shows."""
