"""Tables of results for tests."""

from accelviz.measure import records

SAME = {
    "run": "2026-01-01T00:00:00+00:00",
    "hardware": "made-up GPU",
    "device": "cuda",
    "graph": "a",
    "graph_kind": "twin",
    "fingerprint": "00",
    "nonzeros": 10,
    "columns": 16,
    "dtype": "float32",
    "state": "warm",
    "repeats": 20,
}


def table(*rows, **same):
    """Return a table; a row is (strategy, time, columns that differ from SAME and `same`)."""
    return records.result_table(
        SAME
        | {"strategy": strategy, "median_us": time}
        | {"quartile1_us": time * 0.9, "quartile3_us": time * 1.2}
        | same
        | other
        for strategy, time, other in rows
    )
