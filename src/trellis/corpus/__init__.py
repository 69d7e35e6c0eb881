"""Corpora: the flat container, label sets, tag schemes, readers and writers."""

from trellis.corpus.conll import read_conll, write_conll
from trellis.corpus.conllu import read_conllu, write_conllu
from trellis.corpus.corpus import Column, Corpus, Features, Sample
from trellis.corpus.crfsuite import read_crfsuite, write_crfsuite
from trellis.corpus.csv_table import read_csv
from trellis.corpus.door import as_corpus
from trellis.corpus.graphs import as_graph_corpus, read_graphs, write_graphs
from trellis.corpus.jsonl import read_jsonl, write_jsonl
from trellis.corpus.labels import Label, Labels
from trellis.corpus.schemes import Scheme, get_scheme
from trellis.corpus.segmented import read_segmented

__all__ = [
    "Column",
    "Corpus",
    "Features",
    "Label",
    "Labels",
    "Sample",
    "Scheme",
    "as_corpus",
    "as_graph_corpus",
    "get_scheme",
    "read_conll",
    "read_conllu",
    "read_crfsuite",
    "read_csv",
    "read_graphs",
    "read_jsonl",
    "read_segmented",
    "write_conll",
    "write_conllu",
    "write_crfsuite",
    "write_graphs",
    "write_jsonl",
]
