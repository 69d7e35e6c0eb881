"""One small corpus that can be learned without error, written in every format the tools read."""

from __future__ import annotations

import json

FORMATS = ("conll", "conllu", "crfsuite", "jsonl", "segmented")
LABELLED = {
    "conll": "train.txt",
    "conllu": "train.conllu",
    "crfsuite": "train.crfsuite",
    "jsonl": "train.jsonl",
    "segmented": "train.seg",
}

_RAW = (
    "The/DT/B-NP cat/NN/I-NP sat/VB/B-VP ././O",
    "A/DT/B-NP dog/NN/I-NP ran/VB/B-VP away/RB/B-ADVP ././O",
    "Dogs/NN/B-NP chase/VB/B-VP the/DT/B-NP cat/NN/I-NP",
    "It/PRP/B-NP saw/VB/B-VP a/DT/B-NP big/JJ/I-NP dog/NN/I-NP ././O",
    "Run/VB/B-VP",
)
SENTENCES = [[tuple(token.split("/", 2)) for token in line.split()] for line in _RAW] * 4
GOLD = [[label for *_, label in sentence] for sentence in SENTENCES]
POS = [[pos for _, pos, _ in sentence] for sentence in SENTENCES]
WORDS = [[word for word, *_ in sentence] for sentence in SENTENCES]
SEGMENTED = ["猫 坐在 垫子 上", "狗 跑 了", "大狗 看见 猫", "你好"] * 5


def conll(rows=SENTENCES, gap=" "):
    return "".join("".join(gap.join(row) + "\n" for row in rows_) + "\n" for rows_ in rows)


def unlabelled():
    return conll([[row[:2] for row in sentence] for sentence in SENTENCES])


def conllu():
    lines = []
    for number, sentence in enumerate(SENTENCES):
        lines.append(f"# sent_id = {number}")
        lines.append("1-2\tboth\t" + "\t".join("_" * 8))
        for i, (word, pos, _) in enumerate(sentence, 1):
            lines.append(f"{i}\t{word}\t{word.lower()}\t{pos}\t_\t_\t_\t_\t_\tNote=x")
        lines.append("")
    return "\n".join(lines) + "\n"


def crfsuite():
    rows = []
    for sentence in SENTENCES:
        rows += [f"{label}\tw={word}\tp={pos}\tlen:{len(word)}\n" for word, pos, label in sentence]
        rows.append("\n")
    return "".join(rows)


def jsonl():
    return "".join(
        json.dumps({"word": w, "pos": p, "labels": y}) + "\n"
        for w, p, y in zip(WORDS, POS, GOLD, strict=True)
    )


def segmented():
    return "".join(line + "\n" for line in SEGMENTED)


def write_all(folder):
    """Write the corpus in all formats, and without labels."""
    content = {
        "conll": conll(),
        "conllu": conllu(),
        "crfsuite": crfsuite(),
        "jsonl": jsonl(),
        "segmented": segmented(),
    }
    for kind, text in content.items():
        (folder / LABELLED[kind]).write_text(text, encoding="utf-8")
    (folder / "new.txt").write_text(unlabelled(), encoding="utf-8")


# Said once on a machine whose kernels are not compiled yet; not what is tested here.
NOISE = ("compiling kernels for this machine", "compiled kernel not kept")


def lines_of(text):
    """Lines of standard error that count."""
    return [line for line in text.splitlines() if not any(noise in line for noise in NOISE)]
