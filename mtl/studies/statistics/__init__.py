"""The statistics of a study as pure functions of numbers, each idea in a file of its own; numpy and scipy only."""
