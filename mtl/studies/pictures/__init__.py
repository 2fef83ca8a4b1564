"""Pictures of a study, drawn from result files only; the numbers of each lie beside it as CSV."""

PICTURES = {
    "forest": "differences to the baseline with their intervals",
    "cost": "score against training operations",
}
"""Every picture, and what it shows."""
