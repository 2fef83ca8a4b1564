"""From result files to tables: pure functions of what runs have written."""
