import numpy as np
import pytest

from accelviz.random import (
    edge_uniform,
    edge_uniform_of,
    element_uniform,
    philox,
    row_uniform,
    uniform,
)

ONES = 0xFFFFFFFF
#: Test vectors published by Philox's authors: counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_the_published_vectors(counter, key, words):
    words_drawn = philox(key, tuple(np.array([c], np.uint32) for c in counter))
    assert tuple(int(word[0]) for word in words_drawn) == words
    assert all(word.dtype == np.uint32 for word in words_drawn)


def test_numbers_are_below_one_and_spread_evenly():
    drawn = element_uniform(1 << 18, seed=7)
    assert drawn.dtype == np.float32
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts = np.bincount((drawn * 64).astype(int), minlength=64)
    expected = drawn.size / 64
    assert np.sum((counts - expected) ** 2) / expected < 103.4  # chi-square, 63 degrees, 0.1 %
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4 / np.sqrt(drawn.size)
    assert uniform(np.array([ONES], np.uint32))[0] == np.float32(1 - 2.0**-24)


def test_an_element_is_a_function_of_its_place():
    whole = element_uniform(1001, seed=5, site=2, step=9)
    np.testing.assert_array_equal(element_uniform(10, seed=5, site=2, step=9), whole[:10])
    for other in ({"seed": 6}, {"site": 3}, {"step": 10}, {"seed": 5 + (1 << 32)}):
        key = {"seed": 5, "site": 2, "step": 9} | other
        assert np.mean(element_uniform(1001, **key) == whole) < 0.01, other


def test_an_edge_draws_the_same_wherever_it_is_walked():
    places = np.arange(500)
    drawn = edge_uniform(places, 8, seed=11, site=1, step=4)
    shuffled = np.random.default_rng(0).permutation(places)
    np.testing.assert_array_equal(edge_uniform(shuffled, 8, 11, 1, 4), drawn[shuffled])
    np.testing.assert_array_equal(edge_uniform(places, 3, 11, 1, 4), drawn[:, :3])
    assert len(np.unique(drawn)) > 0.999 * drawn.size
    key, third = (11, 0), (1 + (5 << 16))
    word = philox(key, (np.array([499]), 0, third, 4))[0]
    assert drawn[499, 5] == uniform(word)[0]
    beyond = edge_uniform(np.array([(1 << 32) + 499]), 1, 11, 1, 4)
    assert beyond[0, 0] != drawn[499, 0]


def test_compiled_loops_draw_what_the_array_operations_draw():
    """CuPy provides operations on arrays; here a stand-in provides them, not NumPy itself."""

    class Arrays:
        arange = staticmethod(np.arange)

    for n in (0, 1, 4, 1003):
        blocks = np.arange(-(-n // 4), dtype=np.uint64)
        words = philox((12345, 1 << 31), (blocks, blocks >> np.uint64(32), 65535, ONES))
        drawn = element_uniform(n, (1 << 63) + 12345, 65535, ONES)
        np.testing.assert_array_equal(drawn, uniform(np.stack(words, axis=1).ravel()[:n]))
    places = np.array([0, 5, 2**31, 2**40 + 3])
    words = np.array([77, 0, 3, 2], np.uint32)
    for xp in (np, Arrays):
        np.testing.assert_array_equal(
            edge_uniform_of(places, 9, words, xp), edge_uniform(places, 9, 77, 3, 2)
        )


def test_the_numbers_of_a_row_depend_on_its_node_and_the_step():
    words = np.array([1, 2, 0, 7], np.uint32)
    nodes = np.arange(5_000)
    drawn = row_uniform(nodes, 6, words)
    assert drawn.shape == (5_000, 6)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5, atol=0.02)
    chosen = np.array([9, 2, 9])
    np.testing.assert_array_equal(row_uniform(chosen, 6, words), drawn[chosen])
    np.testing.assert_array_equal(row_uniform(chosen, 3, words), drawn[chosen, :3])
    assert np.mean(row_uniform(nodes, 6, words + np.uint32(1)) == drawn) < 0.01
