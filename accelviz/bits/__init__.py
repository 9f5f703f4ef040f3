"""Products of matrices of a few bits on one-bit tensor cores: QGTC (chapter 2 of the thesis).

`quantize` and `pack` make a `BitTensor`, `product` multiplies two.
"""

from accelviz.bits.convert import levels, quantize
from accelviz.bits.finish import Finish, batch_norm
from accelviz.bits.product import WAYS, Product, plan_product, product
from accelviz.bits.tensor import BitTensor, Scale, pack

__all__ = [
    "WAYS",
    "BitTensor",
    "Finish",
    "Product",
    "Scale",
    "batch_norm",
    "levels",
    "pack",
    "plan_product",
    "product",
    "quantize",
]
