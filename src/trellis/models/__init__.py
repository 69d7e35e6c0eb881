"""Estimators."""

from trellis.models.chain_crf import ChainCRF
from trellis.models.chain_perceptron import ChainPerceptron
from trellis.models.model_file import load_model

__all__ = ["ChainCRF", "ChainPerceptron", "load_model"]
