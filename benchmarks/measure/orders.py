"""Time of each vertex order, and the locality of the graph before and after.

Times one call each, compiled before, from the Graph to the Permutation. Locality is measured on
P A P^T: the average edge span (AES), and the share of nonzeros whose column also occurs in the
previous row, which a warp may find in the L1 cache. Also prints GNNAdvisor's rule, whether
renumbering pays. With --memory each order runs once more to measure its peak: allocations of NumPy
and Numba, without those of igraph and METIS.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

from accelviz import load_graph
from accelviz.card import average_edge_span
from accelviz.graph import Graph
from accelviz.ordering import ORDERS, random_order, renumbering_pays, vertex_order

#: Vertex orders by name, with an entry for each method of finding communities.
CALLS = {
    **{name: (name, {}) for name in ORDERS if name != "community"},
    **{
        f"community ({method})": ("community", {"method": method})
        for method in ("igraph", "metis", "networkx")
    },
}
#: NetworkX takes hours with more nonzeros than this.
NETWORKX_NONZEROS = 500_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--graphs",
        nargs="+",
        default=["cora", "ca-astroph", "email-enron", "luxembourg-osm"],
        help="anything load_graph takes by name, youtube's twin for one",
    )
    parser.add_argument("--orders", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--shuffle", action="store_true", help="shuffle each graph's ids first")
    parser.add_argument("--memory", action="store_true", help="find each order's peak memory too")
    options = parser.parse_args()

    for call in options.orders:
        name, parameters = CALLS[call]
        vertex_order("citeseer", name, **parameters)  # compile
    for graph_name in options.graphs:
        graph = load_graph(graph_name)
        if options.shuffle:
            graph = random_order(graph, seed=1).apply_to_graph(graph, columns=True)
        shuffled = ", ids shuffled" if options.shuffle else ""
        print(f"\n{graph.name}{shuffled}: {graph.n_rows:,} rows, {graph.nnz:,} nonzeros")
        print(renumbering_pays(graph))
        print(f"{'order':<22} {'seconds':>8} {'AES before':>11} {'after':>9} {'shared':>7}", end="")
        print(f" {'peak':>9} {'bytes/nz':>8}" if options.memory else "")
        for call in options.orders:
            if "networkx" in call and graph.nnz > NETWORKX_NONZEROS:
                print(f"{call:<22} left out: too slow beyond {NETWORKX_NONZEROS:,} nonzeros")
            else:
                show(graph, call, options.memory)


def show(graph: Graph, call: str, memory: bool) -> None:
    """Run one order on one graph and print its line."""
    name, parameters = CALLS[call]
    start = time.perf_counter()
    order = vertex_order(graph, name, **parameters)
    seconds = time.perf_counter() - start
    renumbered = order.apply_to_graph(graph, columns=True)
    print(
        f"{call:<22} {seconds:8.3f} {average_edge_span(graph):11,.0f} "
        f"{average_edge_span(renumbered):9,.0f} {shared_share(renumbered):7.1%}",
        end="",
        flush=True,
    )
    if memory:
        tracemalloc.start()
        vertex_order(graph, name, **parameters)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f" {peak / 2**20:5,.0f} MiB {peak / graph.nnz:8.1f}", end="")
    print()


def shared_share(graph: Graph) -> float:
    """Return the share of nonzeros whose column also occurs in the previous row."""
    pattern = graph.adjacency.astype(bool)
    return pattern[1:].multiply(pattern[:-1]).nnz / graph.nnz


if __name__ == "__main__":
    main()
