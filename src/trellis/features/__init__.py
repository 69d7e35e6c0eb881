"""Features: the template language, the encoders, prepared corpora, readers of other templates."""

from trellis.features.attributes import AttributeEncoder
from trellis.features.brown import brown_clusters
from trellis.features.crfpp import read_crfpp
from trellis.features.encoded import Encoded, Encoder
from trellis.features.encoder import TemplateEncoder
from trellis.features.neighbour_means import neighbour_means
from trellis.features.prepared import Prepared, prepare
from trellis.features.templates import Template, Templates, as_templates, named_sets

__all__ = [
    "AttributeEncoder",
    "Encoded",
    "Encoder",
    "Prepared",
    "Template",
    "TemplateEncoder",
    "Templates",
    "as_templates",
    "brown_clusters",
    "named_sets",
    "neighbour_means",
    "prepare",
    "read_crfpp",
]
