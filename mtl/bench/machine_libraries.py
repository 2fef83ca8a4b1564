"""Loads what a run loads, and does nothing: the process that the measured ones are forked from."""

from transformers import BertConfig, BertModel

import mtl.metrics
import mtl.stages.pipeline

__all__ = ["BertConfig", "BertModel", "mtl"]
