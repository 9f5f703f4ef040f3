"""Partition schemes: how nonzeros are dealt out to blocks and warps."""
