"""Generated graphs: twins of the paper's graphs, and random models of any size."""
