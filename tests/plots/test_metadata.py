"""Metadata records: the fields of their words, and `metadata_layout`."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection

import accelviz
from accelviz.errors import AccelvizError, ArgumentError, PartitionError
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.block_records import block_level_records
from accelviz.partition.metadata import Field, MetadataRecord, word_records
from accelviz.plots.metadata import MOST_RECORDS, metadata_layout
from tests.graphs import GRAPHS, graph_of_degrees
from tests.plots.pictures import read_texts

TOY = [1, 1, 2, 2, 3, 5, 9, 0, 1, 4]


def packed(line: MetadataRecord) -> list[int]:
    """The words that the fields make up, read from their values and sizes alone."""
    words = []
    for fields in line.fields:
        word = 0
        for field in fields:
            assert 0 <= field.value < 1 << field.bits
            word = word << field.bits | field.value
        words.append(word)
    return words


def drawn_words(ax) -> list[str]:
    """The bits written in the cells of each line, from top to bottom."""
    cells = [text for text in ax.texts if text.get_ha() == text.get_va() == "center"]
    lines = {}
    for cell in sorted(cells, key=lambda text: text.get_position()):
        lines[cell.get_position()[1]] = lines.get(cell.get_position()[1], "") + cell.get_text()
    return [lines[y] for y in sorted(lines)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["cora", "hub", "all_degrees", "degree_385", "one_node_with_loop"])
@pytest.mark.parametrize("setting", [(12, 32), (2, 2), (7, 1), (1, 65535)])
def test_the_fields_of_an_int4_make_up_its_words(name, setting):
    plan = accelviz.plan(
        GRAPHS[name](), "accel_gcn", max_block_warps=setting[0], max_warp_nzs=setting[1]
    )
    lines = block_level_records(plan.metadata, BlockSetting(*setting), range(len(plan.metadata)))
    for line, words in zip(lines, plan.metadata.view(np.uint32).tolist(), strict=True):
        assert list(line.words) == words == packed(line)
        assert [sum(field.bits for field in fields) for fields in line.fields] == [32] * 4


def test_the_meaning_of_an_int4_describes_the_block():
    plan = accelviz.plan(graph_of_degrees(TOY), "accel_gcn", max_block_warps=2, max_warp_nzs=2)
    lines = block_level_records(plan.metadata, BlockSetting(2, 2), [2, 3, 9])
    two, shared, part = lines
    assert two.title == "block 2"
    assert two.meaning == (
        "degree 2: each of the 2 rows from place 4 on has 2 nonzeros, the first at position 3; "
        "one warp a row, at most 2 nonzeros each"
    )
    shares = "the row in place 6 has 3 nonzeros, the first at position 7; 2 warps share a row"
    assert shares in shared.meaning
    assert part.meaning == (
        "degree 9, more than the 4 that a block takes: this one takes 1 nonzero of the row in "
        "place 9, the first at position 27, at most 1 a warp"
    )
    assert [field for fields in two.fields for field in fields] == [
        Field("degree", 32, 2),
        Field("first place", 32, 4),
        Field("first nonzero (loc)", 32, 3),
        Field("info: nonzeros of a warp", 16, 2),
        Field("info: rows", 16, 2),
    ]
    assert part.fields[3] == (Field("info: nonzeros of this part", 32, 1),)


def test_words_of_other_metadata_have_the_names_given_or_none():
    plan = accelviz.plan("cora", "accel_gcn", partition="warp")
    names = ("row", "first nonzero", "length", "padding")
    (line,) = word_records(plan.metadata, 1700, names=names, called="warp")
    assert line.title == "warp 1,700"
    assert [fields[0].value for fields in line.fields] == plan.metadata[1700].tolist()
    assert tuple(fields[0].name for fields in line.fields) == names
    (line,) = word_records(accelviz.plan("cora", "merge_path").metadata, [3])
    assert len(line.words) == 1
    assert line.fields == ()
    (line,) = word_records(np.array([[-1, 2]], dtype=np.int32), 0, names=("a", "b"))
    assert line.words == (0xFFFFFFFF, 2)
    assert line.fields[0] == (Field("a", 32, -1),)


def test_invalid_metadata_raises():
    plan = accelviz.plan("cora", "accel_gcn")
    with pytest.raises(ArgumentError, match="there is no block 252. Expected: 0 to 251"):
        block_level_records(plan.metadata, BlockSetting(), [0, 252])
    with pytest.raises(PartitionError, match="the setting that the metadata was made with"):
        block_level_records(plan.metadata, BlockSetting(1, 2), 251)
    with pytest.raises(ArgumentError, match="2 names. Expected: 4, as many as words"):
        word_records(plan.metadata, 0, names=("a", "b"))
    with pytest.raises(ArgumentError, match="int64"):
        word_records(plan.metadata.astype(np.int64), 0)
    with pytest.raises(ArgumentError, match="at most 16"):
        metadata_layout(word_records(plan.metadata, range(MOST_RECORDS + 1)))
    odd = MetadataRecord("odd", (1,), ((Field("a", 16, 0), Field("b", 15, 1)),))
    with pytest.raises(AccelvizError, match=r"16 \+ 15 bits"):
        metadata_layout([odd])


def test_the_picture_shows_each_bit_digit_and_field(ax):
    plan = accelviz.plan("cora", "accel_gcn")
    lines = block_level_records(plan.metadata, BlockSetting(), [0, 251])
    metadata_layout(lines, ax=ax)
    words = [word for line in lines for word in line.words]
    assert drawn_words(ax) == [f"{word:032b}" for word in words]
    texts = read_texts(ax)
    for word in words:
        assert f"0x{word:08X}" in texts
    digits = [
        text.get_text() for text in ax.texts if text.get_va() == "top" and len(text.get_text()) == 1
    ]
    assert "".join(digits) == "".join(f"{word:08X}" for word in words)
    for name, value in (("degree", 168), ("info: nonzeros of a warp", 28), ("info: rows", 1)):
        assert f"{name} = {value}" in texts
    assert texts.count("15") == 2  # where rows begin
    assert {"block 0: 128 bits", "block 251: 128 bits", ".x", ".w"} <= set(texts)


def test_ones_are_darker_than_zeros_and_neighboring_fields_differ(ax):
    line = MetadataRecord("line", (0x0001_8000,), ((Field("a", 16, 1), Field("b", 16, 0x8000)),))
    metadata_layout([line], ax=ax)
    (cells,) = (
        collection for collection in ax.collections if isinstance(collection, PolyCollection)
    )
    faces = cells.get_facecolor()[:, :3]
    assert len(np.unique(faces, axis=0)) == 4
    assert faces[15].sum() < faces[14].sum()
    assert faces[16].sum() < faces[17].sum()
    assert (faces[:15] == faces[0]).all()
    assert (faces[17:] == faces[17]).all()


def test_unnamed_words_have_their_value_and_empty_metadata_is_stated():
    drawn = metadata_layout(word_records(accelviz.plan("cora", "gnnadvisor").metadata, [1700]))
    texts = read_texts(drawn)
    assert {"word 0", "word 1", "0x00000699 = 1,689", "record 1,700: 64 bits"} <= set(texts)
    assert "0x00000699" in drawn.figure.alt
    empty = metadata_layout(
        word_records(accelviz.plan(GRAPHS["empty"](), "accel_gcn").metadata, [])
    )
    assert read_texts(empty) == ["no metadata"]
    for ax in (drawn, empty):
        ax.figure.canvas.draw()
        plt.close(ax.figure)
