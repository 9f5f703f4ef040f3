"""Degree histograms: bins, shares and longest rows, compared with row-by-row counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelviz.analysis.degrees import (
    checked_histogram,
    cumulative_shares,
    degree_at,
    logarithmic_bins,
    longest_rows,
)
from accelviz.datasets import TABLE_ONE
from accelviz.errors import ArgumentError
from accelviz.plots.degrees import MOST_POINTS, degree_histogram, degree_shares
from tests.plots.pictures import read_texts, read_title

TOY = np.array([0, 1, 1, 1, 2, 2, 2, 3, 3, 9])


def histogram(rows):
    """The histogram of a list with each row's degree."""
    return np.unique(np.asarray(rows, dtype=np.int64), return_counts=True)


degree_lists = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 5000)), min_size=1, max_size=60)


@given(rows=degree_lists)
def test_logarithmic_bins_hold_every_row_with_a_nonzero_once(rows):
    bins = logarithmic_bins(*histogram(rows))
    rows = np.array(rows)
    for low, high, width, count in bins.itertuples(index=False):
        assert width == high - low + 1
        assert count == ((rows >= low) & (rows <= high)).sum() > 0
    assert bins.rows.sum() == (rows > 0).sum()
    assert (bins.low[1:].to_numpy() > bins.high[:-1].to_numpy()).all()
    assert (bins.high < 2 ** (1 / 4) * bins.low + 1).all()


@given(rows=degree_lists, share=st.floats(0.001, 1))
def test_the_longest_rows_and_the_shares_are_those_of_the_sorted_rows(rows, share):
    degrees, counts = histogram(rows)
    longest = longest_rows(degrees, counts, share)
    rows = np.sort(rows)[::-1]
    assert longest.rows == max(1, round(share * rows.size))
    assert longest.n_rows == rows.size
    assert longest.degree == rows[longest.rows - 1]
    assert longest.share == pytest.approx(rows[: longest.rows].sum() / max(1, rows.sum()))
    of_rows, of_nonzeros = cumulative_shares(degrees, counts)
    for degree, r, n in zip(degrees, of_rows, of_nonzeros, strict=True):
        assert r == pytest.approx((rows <= degree).mean())
        assert n == pytest.approx(rows[rows <= degree].sum() / max(1, rows.sum()))


def test_a_degree_that_a_share_of_the_rows_does_not_exceed():
    assert [degree_at(*histogram(TOY), share) for share in (0.05, 0.1, 0.5, 0.9, 0.95, 1)] == [
        *(0, 0, 2, 3, 9, 9)
    ]
    assert degree_at(*histogram([]), 0.5) == 0


@pytest.mark.parametrize(
    ("degrees", "rows"),
    [([1, 2], [1]), ([[1]], [[1]]), ([2, 1], [1, 1]), ([1, 1], [1, 1]), ([-1], [1]), ([1.5], [1])],
)
def test_invalid_histograms_raise(degrees, rows):
    with pytest.raises(ArgumentError):
        checked_histogram(np.array(degrees), np.array(rows))
    for draw in (degree_histogram, degree_shares):
        with pytest.raises(ArgumentError):
            draw(np.array(degrees), np.array(rows))


def test_invalid_shares_raise():
    for share in (0, -1, 1.5):
        with pytest.raises(ArgumentError, match="at most 1"):
            longest_rows(*histogram(TOY), share)


def test_many_distinct_degrees_are_counted_in_ranges(ax):
    entry = TABLE_ONE["reddit"]
    degrees, rows = entry.histogram()
    assert degrees.size > MOST_POINTS
    degree_histogram(degrees, rows, ax=ax)
    assert not ax.lines
    bottom = ax.get_ylim()[0]
    heights = np.array([bar.get_height() + bottom for bar in ax.patches])
    widths = np.array([bar.get_width() for bar in ax.patches])
    assert (heights * widths).sum() == pytest.approx(rows.sum())
    assert widths[0] == 1
    assert widths[-1] > 100
    assert "rows per degree" in ax.get_ylabel()


def test_few_distinct_degrees_are_points(ax):
    degree_histogram(*histogram(TOY), ax=ax)
    assert ax.lines[0].get_xydata().tolist() == [[1, 3], [2, 3], [3, 2], [9, 1]]
    assert ax.get_xlabel().endswith("not shown: 1 row without a nonzero")
    assert ax.get_ylabel() == "rows with that degree"
    assert not read_title(ax)  # the caller's to write


def test_the_title_states_median_and_largest_degree():
    ax = degree_histogram(*histogram(TOY))
    sentence = "half of the rows have at most 2 nonzeros, the longest has 9"
    assert read_title(ax) == sentence
    assert "10 rows, 1 of them without a nonzero" in ax.figure.alt
    assert sentence in ax.figure.alt
    regular = degree_histogram(*histogram([4] * 5))
    assert read_title(regular) == "every row has 4 nonzeros"


def test_shares_are_the_two_curves_and_the_sentence():
    ax = degree_shares(*histogram(TOY))
    rows, nonzeros, bracket = ax.lines
    assert rows.get_drawstyle() == nonzeros.get_drawstyle() == "steps-post"
    for line, expected in (
        (rows, [0.1, 0.1, 0.4, 0.7, 0.9, 1, 1]),
        (nonzeros, [0, 0, 3 / 24, 9 / 24, 15 / 24, 1, 1]),
    ):
        np.testing.assert_allclose(line.get_ydata(), expected)
        assert line.get_xdata()[1:-1].tolist() == [0.8, 1, 2, 3, 9]
    assert bracket.get_xdata().tolist() == [9, 9]
    np.testing.assert_allclose(bracket.get_ydata(), [15 / 24, 1])
    assert read_title(ax) == "the longest of 10 rows holds 38 % of the nonzeros"
    assert {"rows", "nonzeros"} <= set(read_texts(ax))
    assert "the longest of 10 rows holds 38 % of the nonzeros" in ax.figure.alt
    assert "rows of at most 3 hold half of the nonzeros" in ax.figure.alt


@pytest.mark.parametrize(("second", "heights"), [(384, 1), (40, 3)])
def test_bands_are_labelled_and_one_under_the_other_where_narrow(second, heights):
    bounds = {32: "one warp a row", second: "warps share a row", 10**9: "blocks share a row"}
    ax = degree_histogram(*TABLE_ONE["reddit"].histogram(), bounds=bounds)
    labels = [text for text in ax.texts if text.get_text() in bounds.values()]
    assert len(labels) == 3
    assert len({text.get_position()[1] for text in labels}) == heights


@pytest.mark.parametrize(("rows", "reason"), [([], "no row"), ([0] * 5, "no row has a nonzero")])
def test_empty_histograms_state_the_reason(rows, reason):
    for ax in (
        degree_histogram(*histogram(rows), bounds={32: "one warp a row"}),
        degree_shares(*histogram(rows)),
    ):
        assert reason in read_texts(ax)
        assert read_title(ax) == reason
        assert reason in ax.figure.alt
        ax.figure.draw_without_rendering()


@pytest.mark.parametrize("name", ["citation", "am", "ovcar-8h"])
def test_large_graphs_are_drawn(name):
    degrees, rows = TABLE_ONE[name].histogram()
    for draw in (degree_histogram, degree_shares):
        draw(degrees, rows).figure.draw_without_rendering()
