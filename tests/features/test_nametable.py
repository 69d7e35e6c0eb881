"""Tables of names against a dict, in both their forms, and with hashes that tell little."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.features import nametable
from trellis.features.nametable import NameTable, PackedNames
from trellis.files.stored import pack_strings

TEXT = st.one_of(
    st.text(max_size=3),
    st.text("aé\0", max_size=20),
    st.sampled_from(
        ["x" * n + end for n in (7, 8, 127, 128, 300) for end in ("", "a", "\0", "日")]
    ),
)
NAMES = st.lists(TEXT.filter(lambda text: not has_surrogates(text)), unique=True, max_size=20)
ASKED = st.lists(TEXT, max_size=20)


def has_surrogates(text):
    return any("\ud800" <= c <= "\udfff" for c in text)


def packed(names):
    return PackedNames(**pack_strings(names))


def numbers(names, asked):
    return [names.index(name) if name in names else -1 for name in asked]


@pytest.mark.parametrize("bits", [64, 1, 0])
@given(names=NAMES, asked=ASKED)
def test_packed_names(bits, names, asked):
    with pytest.MonkeyPatch.context() as patch:
        whole = nametable._hashes
        keep = np.uint64((1 << bits) - 1)
        patch.setattr(nametable, "_hashes", lambda *arrays: whole(*arrays) & keep << np.uint64(8))
        patch.setattr(nametable, "_CHUNK", 3)
        table = packed(names)
        found = table.find(asked + names)
        assert found.dtype == np.int32
        assert found.tolist() == numbers(names, asked) + list(range(len(names)))
        assert list(table) == names and len(table) == len(names)
        assert table[np.arange(len(names))[::-1]] == names[::-1]
        for name in names:
            with pytest.raises(DataError, match="names must differ"):
                packed([*names, name])


@given(names=NAMES, more=NAMES, asked=ASKED, few=st.booleans())
def test_tables(names, more, asked, few):
    more = [name for name in more if name not in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nametable, "_FEW", 10 if few else 0)
        for table in (NameTable(names), NameTable(packed(names))):
            before = copy.deepcopy(table)
            for k in range(3):  # the last of them by a dict
                assert table.find(asked).tolist() == numbers(names, asked), k
            assert list(table) == names and len(table) == len(names)
            for name, array in pack_strings(names, "x.").items():
                assert table.pack("x.")[name].tolist() == array.tolist()
            table.extend(more)
            for one, known in ((table, names + more), (before, names)):
                for again in (one, pickle.loads(pickle.dumps(one))):
                    assert again.find(known).tolist() == list(range(len(known)))
                    assert again.find(asked).tolist() == numbers(known, asked)
                    assert again[range(len(known))] == list(again) == known


def test_names_are_told_apart_byte_by_byte():
    alike = ["x" * 128 + end for end in "abc"]  # the hash sees 128 bytes
    table = packed(alike[:2])
    assert len(table._twins) == 2
    assert table.find([alike[2], alike[1], alike[0]]).tolist() == [-1, 1, 0]
    assert packed(alike[:1]).find(alike).tolist() == [0, -1, -1]


def test_lone_surrogates_are_not_found():
    assert packed(["a", "\ue000"]).find(["\ud800", "a\udfff", "a"]).tolist() == [-1, -1, 0]


def test_hashes_of_many_names_differ():
    names = [f"w[{i % 5 - 2}]={i:x}" for i in range(100_000)]
    assert not packed(names)._twins
    assert packed(names).find(names[::-1]).tolist() == list(range(len(names)))[::-1]


def test_a_dict_is_made_when_it_pays(monkeypatch):
    monkeypatch.setattr(nametable, "_FEW", 0)
    table = NameTable(packed(["a", "b", "c"]))
    table.find(["a", "b"])
    assert table._packed is not None
    table.find(["a"])
    assert table._packed is None
    assert table.find(["b", "d"]).tolist() == [1, -1]


def test_packed_names_have_memory_of_their_own():
    arrays = pack_strings(["a", "b"])
    blob = arrays["blob"].copy()
    table = PackedNames(blob[:], arrays["offsets"])
    blob[:] = 0
    assert table.find(["a", "b"]).tolist() == [0, 1]


def test_spare_names_of_an_interrupted_lesson_do_no_harm():
    table = NameTable(["a"])
    table._listed.append("lost")
    table.extend(["b"])
    assert table.find(["a", "lost", "b"]).tolist() == [0, -1, 1]
    assert table[[0, 1]] == ["a", "b"]


def test_names_that_stand_twice():
    with pytest.raises(DataError, match="names must differ"):
        NameTable(["a", "b", "a"])
