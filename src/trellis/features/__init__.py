"""Features: the template language, the encoders, and readers of other tools' templates."""

from trellis.features.attributes import AttributeEncoder
from trellis.features.crfpp import read_crfpp
from trellis.features.encoded import Encoded, Encoder
from trellis.features.encoder import TemplateEncoder
from trellis.features.templates import Template, Templates, as_templates, named_sets

__all__ = [
    "AttributeEncoder",
    "Encoded",
    "Encoder",
    "Template",
    "TemplateEncoder",
    "Templates",
    "as_templates",
    "named_sets",
    "read_crfpp",
]
