"""Measurements of speed: trainings, evaluation and tokenising, alone and beside Hugging Face's own ways."""
