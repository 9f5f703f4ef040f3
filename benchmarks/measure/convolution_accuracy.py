"""Test accuracy of networks with three ways of mixing channels at equal cost.

    python benchmarks/measure/convolution_accuracy.py --output accuracy.csv

Networks of two blocks whose second step mixes channels: pointwise, grouped pointwise (2 groups), or
sliding channels (cg 2, co 50 %); the last two have half of the weights. There are two problems.
`digits` are scikit-learn's (1,797 images of 8 x 8 pixels; a block, at 4 x 4, is DW3 and mixing).
`teacher` is synthetic: the sign of a sum of products of one channel of each half, which a network
that does not mix the halves can only guess. The seed determines weights, batches, the split of the
digits, and the teacher. Needs PyTorch and scikit-learn, but no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from study import parser, record
from torch import nn

from accelviz.convolution import Kernel
from accelviz.measure.records import source_commit

MIXING = {
    "pw": Kernel("pw"),
    "gpw": Kernel("gpw", groups=2),
    "scc": Kernel("rpw", groups=2, overlap=0.5),
}
CHANNELS, BATCH, RATE = 32, 64, 2e-3
TEACHER_STEPS, DIGITS_EPOCHS = 3000, 30


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10)
    chosen = options.parse_args()
    record(accuracies(chosen.seeds), chosen.output, {"commit": source_commit()})


def accuracies(seeds: int) -> Iterator[dict[str, Any]]:
    """Train on both problems with each way of mixing, seed by seed."""
    for seed in range(seeds):
        for data, problem in (("teacher", teacher), ("digits", digits)):
            for mixing, kernel in MIXING.items():
                torch.manual_seed(seed)
                accuracy, network = problem(np.random.default_rng(seed), kernel)
                about = {"data": data, "mixing": mixing, "kernel": kernel.name, "seed": seed}
                weights = sum(int((p != 0).sum()) for p in network.parameters())
                yield {**about, "test_accuracy": round(accuracy, 4), "weights": weights}


class Mixing(nn.Module):
    """A convolution of 1 x 1 whose filters read the channels given by a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.mask = torch.from_numpy(kernel.reads(CHANNELS, CHANNELS)).float()[..., None, None]
        self.weight = nn.Parameter(he_normal(self.mask.shape, int(self.mask[0].sum())) * self.mask)
        self.bias = nn.Parameter(he_normal((CHANNELS,), 10**6))

    def forward(self, X: Any) -> Any:
        """Convolve maps of shape (images, channels, side, side)."""
        return nn.functional.conv2d(X, self.weight * self.mask, self.bias)


def he_normal(shape: Iterable[int], inputs: int) -> Any:
    """Return random weights of a layer with a number of inputs (He et al.)."""
    return torch.randn(*shape) * (2 / inputs) ** 0.5


def depthwise(inputs: int) -> nn.Conv2d:
    """Return a convolution of 3 x 3 pixels, from 1 channel or depthwise."""
    layer = nn.Conv2d(inputs, CHANNELS, 3, padding=1, groups=inputs, bias=False)
    layer.weight.data = he_normal(layer.weight.shape, 9)
    return layer


def network(kernel: Kernel, classes: int, *, pixels: bool) -> nn.Sequential:
    """Return two blocks of (DW3 if `pixels`,) mixing and ReLU, then a mean and a dense layer."""
    block = lambda: [*([depthwise(CHANNELS)] if pixels else []), Mixing(kernel), nn.ReLU()]  # noqa: E731
    stem = [depthwise(1), nn.ReLU(), nn.AvgPool2d(2)] if pixels else []
    dense = nn.Linear(CHANNELS, classes, bias=False)
    dense.weight.data = he_normal(dense.weight.shape, CHANNELS)
    return nn.Sequential(*stem, *block(), *block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense)


def trained(model: nn.Module, batches: Iterable[tuple[Any, Any]], steps: int, rate: float) -> None:
    """Train with Adam and a learning rate that decreases to zero."""
    optimiser = torch.optim.Adam(model.parameters(), rate)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
    for X, labels in batches:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(X), labels).backward()
        optimiser.step()
        falling.step()


@torch.no_grad()
def accuracy(model: Callable[[Any], Any], X: Any, labels: Any) -> float:
    """Return the share of correctly classified images."""
    return float((model(X).argmax(dim=1) == labels).float().mean())


def teacher(rng: np.random.Generator, kernel: Kernel) -> tuple[float, nn.Module]:
    """Train on the sign of a sum of eight products across the halves of the channels."""
    one, other = (rng.permutation(CHANNELS // 2)[:8] + first for first in (0, CHANNELS // 2))

    def drawn(n: int) -> tuple[Any, Any]:
        X = torch.randn(n, CHANNELS)
        return X[..., None, None], ((X[:, one] * X[:, other]).sum(dim=1) > 0).long()

    model = network(kernel, 2, pixels=False)
    trained(model, (drawn(BATCH) for _ in range(TEACHER_STEPS)), TEACHER_STEPS, RATE)
    return accuracy(model, *drawn(10_000)), model


def digits(rng: np.random.Generator, kernel: Kernel) -> tuple[float, nn.Module]:
    """Train on two thirds of scikit-learn's digits, test on the rest."""
    from sklearn.datasets import load_digits

    images, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    images, order = (images.reshape(-1, 1, 8, 8) / 16 - 0.5).float(), rng.permutation(len(labels))
    learn, test = np.split(order, [len(labels) * 2 // 3])
    n_batches = learn.size // BATCH
    batches = (
        (images[batch], labels[batch])
        for _ in range(DIGITS_EPOCHS)
        for batch in rng.permutation(learn)[: n_batches * BATCH].reshape(n_batches, BATCH)
    )
    model = network(kernel, 10, pixels=True)
    trained(model, batches, DIGITS_EPOCHS * n_batches, 2 * RATE)
    return accuracy(model, images[test], labels[test]), model


if __name__ == "__main__":
    main()
