"""Pictures of a study, drawn from result files only; the numbers of each lie beside it as CSV."""

PICTURES = {
    "forest": "differences to the baseline with their intervals",
    "cost": "score against training operations",
    "sweep": "scores of small and large tasks against the sampling temperature",
    "transfer": "gain of each task from each other one, of pairs trained jointly",
    "fraction": "scores against the number of a task's own examples",
    "curves": "losses and scores over the training, from metrics.jsonl",
    "probabilities": "shares of the tasks among the examples drawn, and as planned",
    "epochs": "gain against how often a task's own examples were seen",
}
"""Every picture, and what it shows."""
