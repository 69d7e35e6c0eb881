"""Estimators."""

from trellis.models.chain_crf import ChainCRF
from trellis.models.chain_perceptron import ChainPerceptron
from trellis.models.checkpoint import Checkpoint
from trellis.models.model_file import load_model
from trellis.models.regularised_decoder import RegularisedDecoder

__all__ = ["ChainCRF", "ChainPerceptron", "Checkpoint", "RegularisedDecoder", "load_model"]
