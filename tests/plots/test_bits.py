"""Pictures of bit tensors: planes, tiles, and times against the density."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from accelviz import bits, plots
from tests.plots.pictures import read_texts, read_title


def test_planes_are_drawn_each_with_its_words():
    numbers = np.random.default_rng(0).integers(0, 8, (20, 70))
    for side, lines in (("left", 2), ("right", 0)):
        panels = plots.bit_planes(bits.pack(numbers, 3, side))
        for plane, ax in enumerate(panels):
            assert np.array_equal(ax.images[0].get_array(), numbers >> plane & 1)
            assert len(ax.lines) == lines
        assert "3 planes" in panels[0].figure.alt
        plt.close(panels[0].figure)


def test_tiles_with_a_one_are_shaded():
    a = np.zeros((40, 300), int)
    a[3, 3] = a[7, 100] = a[39, 299] = 1
    ax = plots.jumped_tiles(bits.pack(a, 1, "left"))
    assert len(ax.collections[0].get_paths()) == 2
    assert read_title(ax).startswith("2 of 15 tiles of 8 x 128 are multiplied, 87%")
    assert len(ax.collections[1].get_offsets()) == 3


def test_the_crossover_has_a_line_for_each_algorithm():
    names = ["algorithm", "bits", "density", "median_us"]
    rows = [("gather", 8, 0.01, 5.0), ("gather", 8, 0.1, 50.0), ("lane_groups", 32, 0.01, 9.0)]
    rows += [("split", 2, 1.0, 20.0), ("cublas int8", 8, 1.0, 70.0)]
    ax = plots.bits_crossover(pd.DataFrame(rows, columns=names))
    assert [line.get_ydata()[-1] for line in ax.lines] == [50.0, 9.0, 20.0, 70.0]
    assert set(read_texts(ax)) == {"1 x 2 bits", "cuBLAS INT8"}
