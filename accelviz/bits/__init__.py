"""Products of matrices of a few bits on one-bit tensor cores: QGTC (chapter 2 of the thesis).

`quantize` and `pack` make a `BitTensor`, `product` multiplies two; `batches` cuts a graph into
dense subgraphs, `networks` trains and runs networks of few bits. On graphs, the same products are
the operation "bit_product". Sums of rows that `pack_rows` packs are "bit_spmm_8" and "bit_spmm_4".
"""

from accelviz.bits import batches, networks
from accelviz.bits.convert import levels, quantize
from accelviz.bits.finish import Finish, batch_norm
from accelviz.bits.product import ALGORITHMS, Product, plan_product, product
from accelviz.bits.tensor import BitTensor, Scale, pack, pack_rows

__all__ = [
    "ALGORITHMS",
    "BitTensor",
    "Finish",
    "Product",
    "Scale",
    "batch_norm",
    "batches",
    "levels",
    "networks",
    "pack",
    "pack_rows",
    "plan_product",
    "product",
    "quantize",
]
