"""Small, honest accuracy: what mixes channels better, at equal cost.

    python benchmarks/measure/convolution_accuracy.py --output accuracy.csv

Networks of two blocks whose second step mixes channels: pointwise, grouped pointwise (2 groups), or
sliding channels (cg 2, co 50 %), which have half of the weights. Two problems. `digits` are
scikit-learn's (1,797 images of 8 x 8 pixels; a block, at 4 x 4, is DW3 and mixing). `teacher` is
made up: the sign of a sum of products of channels, each of one half by one of the other, so that a
network that keeps the halves apart can only guess. Everything is trained in NumPy, one seed at a
time; the seed draws weights, batches, the split of the digits, and the teacher. Needs scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from study import parser, record

from accelviz.convolution import Kernel
from accelviz.measure.records import source_commit

MIXING = {
    "pw": Kernel("pw"),
    "gpw": Kernel("gpw", groups=2),
    "scc": Kernel("rpw", groups=2, overlap=0.5),
}
CHANNELS, BATCH, RATE = 32, 64, 2e-3
SHIFTS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10)
    chosen = options.parse_args()
    record(accuracies(chosen.seeds), chosen.output, {"commit": source_commit()})


def accuracies(seeds: int) -> Iterator[dict[str, Any]]:
    """Train on both problems with every way of mixing, seed by seed."""
    for seed in range(seeds):
        for data, problem in (("teacher", teacher), ("digits", digits)):
            for mixing, kernel in MIXING.items():
                accuracy, weights = problem(seed, kernel)
                about = {"data": data, "mixing": mixing, "kernel": kernel.name, "seed": seed}
                yield {**about, "test_accuracy": round(accuracy, 4), "weights": weights}


class Parameters:
    """Arrays by name, trained by Adam."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.step = rng, 0
        self.arrays: dict[str, Any] = {}
        self.masks: dict[str, Any] = {}
        self.moments: dict[str, Any] = {}

    def add(self, name: str, shape: tuple[int, ...], inputs: int, mask: Any = None) -> None:
        """Draw an array of a layer with so many inputs; what is masked stays zero."""
        drawn = self.rng.standard_normal(shape) * np.sqrt(2 / inputs)
        self.masks[name] = np.ones(shape) if mask is None else mask
        self.arrays[name] = (drawn * self.masks[name]).astype(np.float32)
        self.moments[name] = np.zeros((2, *shape), np.float32)

    def update(self, gradients: dict[str, Any], rate: float) -> None:
        """Make a step of Adam."""
        self.step += 1
        for name, gradient in gradients.items():
            gradient = gradient * self.masks[name]
            mean, square = self.moments[name]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            scale = np.sqrt(square / (1 - 0.999**self.step)) + 1e-8
            self.arrays[name] -= rate * mean / (1 - 0.9**self.step) / scale

    @property
    def count(self) -> int:
        """Weights that are not masked."""
        return int(sum(mask.sum() for mask in self.masks.values()))


def depthwise(X: Any, weights: Any) -> Any:
    """Convolve each channel of (images, side, side, channels) with 3 x 3 pixels, zeros around."""
    padded = np.pad(X, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n = X.shape[1]
    views = (padded[:, 1 + i : 1 + i + n, 1 + j : 1 + j + n] for i, j in SHIFTS)
    return sum(view * weight for view, weight in zip(views, weights, strict=True))


def depthwise_gradient(X: Any, weights: Any, dY: Any) -> tuple[Any, Any]:
    """Return the gradients of `depthwise` by X and by the weights."""
    padded = np.pad(X, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n = X.shape[1]
    d_weights = np.stack(
        [
            np.einsum("nijc,nijc->c", padded[:, 1 + i : 1 + i + n, 1 + j : 1 + j + n], dY)
            for i, j in SHIFTS
        ]
    )
    return depthwise(dY, weights[::-1]), d_weights


class Blocks:
    """Two blocks of (DW3 if there are pixels,) mixing and ReLU; then the mean and a dense layer."""

    def __init__(self, kernel: Kernel, classes: int, rng: np.random.Generator, *, pixels: bool):
        self.pixels, self.parameters = pixels, Parameters(rng)
        mask = kernel.reads(CHANNELS, CHANNELS).astype(np.float32)
        for block in "12":
            if pixels:
                self.parameters.add(f"dw{block}", (9, CHANNELS), 9)
            self.parameters.add(f"mix{block}", mask.shape, int(mask[0].sum()), mask)
            self.parameters.add(f"bias{block}", (CHANNELS,), 10**6)
        self.parameters.add("dense", (classes, CHANNELS), CHANNELS)

    def forward(self, X: Any) -> tuple[Any, list[Any]]:
        """Return the scores, and what the way back needs."""
        arrays, saved = self.parameters.arrays, []
        for block in "12":
            seen = depthwise(X, arrays[f"dw{block}"]) if self.pixels else X
            Y = np.maximum(seen @ arrays[f"mix{block}"].T + arrays[f"bias{block}"], 0)
            saved.append((X, seen, Y))
            X = Y
        pooled = X.mean(axis=(1, 2)) if self.pixels else X
        return pooled @ arrays["dense"].T, [*saved, pooled]

    def gradients(self, saved: list[Any], d_scores: Any) -> tuple[dict[str, Any], Any]:
        """Return the gradients by all arrays, and by the input."""
        arrays = self.parameters.arrays
        gradients = {"dense": d_scores.T @ saved[-1]}
        dY = d_scores @ arrays["dense"]
        if self.pixels:
            pixels = np.prod(saved[0][0].shape[1:3])
            dY = np.broadcast_to(dY[:, None, None] / pixels, saved[1][2].shape)
        for block, (X, seen, Y) in zip("21", (saved[1], saved[0]), strict=True):
            dZ = (dY * (Y > 0)).astype(np.float32)
            flat = dZ.reshape(-1, CHANNELS)
            gradients[f"mix{block}"] = flat.T @ seen.reshape(-1, CHANNELS)
            gradients[f"bias{block}"] = flat.sum(axis=0)
            dY = dZ @ arrays[f"mix{block}"]
            if self.pixels:
                dY, gradients[f"dw{block}"] = depthwise_gradient(X, arrays[f"dw{block}"], dY)
        return gradients, dY


def entropy_gradient(scores: Any, labels: Any) -> Any:
    """Return the gradient of the mean cross entropy by the scores."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    share = powers / powers.sum(axis=1, keepdims=True)
    share[np.arange(labels.size), labels] -= 1
    return share / labels.size


def teacher(seed: int, kernel: Kernel, steps: int = 3000) -> tuple[float, int]:
    """Learn the sign of eight products across the halves; return test accuracy and weights."""
    rng = np.random.default_rng(seed)
    one, other = (rng.permutation(CHANNELS // 2)[:8] + first for first in (0, CHANNELS // 2))

    def drawn(n: int) -> tuple[Any, Any]:
        X = rng.standard_normal((n, CHANNELS)).astype(np.float32)
        return X, (np.sum(X[:, one] * X[:, other], axis=1) > 0).astype(int)

    model = Blocks(kernel, 2, rng, pixels=False)
    for step in range(steps):
        X, labels = drawn(BATCH)
        scores, saved = model.forward(X)
        gradients, _ = model.gradients(saved, entropy_gradient(scores, labels))
        model.parameters.update(gradients, RATE * (1 - step / steps))
    X, labels = drawn(10_000)
    return float((model.forward(X)[0].argmax(axis=1) == labels).mean()), model.parameters.count


def batches(n: int, epochs: int, rng: np.random.Generator) -> Iterator[tuple[float, Any]]:
    """Give the share that is left, and the examples of each batch."""
    n_batches = n // BATCH
    for epoch in range(epochs):
        order = rng.permutation(n)
        for i in range(n_batches):
            left = 1 - (epoch * n_batches + i) / (epochs * n_batches)
            yield left, order[i * BATCH : (i + 1) * BATCH]


def stemmed(X: Any, stem: Any) -> Any:
    """Make the channels of one, by 3 x 3 pixels."""
    return depthwise(np.broadcast_to(X, (*X.shape[:3], CHANNELS)), stem)


def halved(X: Any) -> Any:
    """Return the mean of each 2 x 2 pixels."""
    n = X.shape[1] // 2
    return X.reshape(len(X), n, 2, n, 2, -1).mean(axis=(2, 4))


def digits(seed: int, kernel: Kernel, epochs: int = 30) -> tuple[float, int]:
    """Learn scikit-learn's digits, a third of them for the test."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8, 1) / 16 - 0.5).astype(np.float32)
    order = rng.permutation(labels.size)
    learn, test = order[: labels.size * 2 // 3], order[labels.size * 2 // 3 :]
    model = Blocks(kernel, 10, rng, pixels=True)
    model.parameters.add("stem", (9, CHANNELS), 9)
    for left, batch in batches(learn.size, epochs, rng):
        X, stem = images[learn[batch]], model.parameters.arrays["stem"]
        Z = stemmed(X, stem)
        scores, saved = model.forward(halved(np.maximum(Z, 0)))
        gradients, dX = model.gradients(saved, entropy_gradient(scores, labels[learn[batch]]))
        dZ = dX.repeat(2, axis=1).repeat(2, axis=2) / 4 * (Z > 0)
        gradients["stem"] = depthwise_gradient(np.broadcast_to(X, Z.shape), stem, dZ)[1]
        model.parameters.update(gradients, 2 * RATE * left)
    Z = stemmed(images[test], model.parameters.arrays["stem"])
    guessed = model.forward(halved(np.maximum(Z, 0)))[0].argmax(axis=1)
    return float((guessed == labels[test]).mean()), model.parameters.count


if __name__ == "__main__":
    main()
