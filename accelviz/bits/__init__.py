"""Products of matrices with a few bits per number, on 1-bit tensor cores: QGTC (thesis, chapter 2).

`quantize` and `pack` return a `BitTensor`; `product` multiplies two of them. `batches` divides a
graph into dense subgraphs; `networks` trains and runs quantized networks. Operations on graphs are
"bit_product", and "bit_spmm_8" and "bit_spmm_4" for rows that `pack_rows` packs.
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
