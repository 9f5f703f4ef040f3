"""Test accuracy of narrow VGG16, VGG19 and MobileNet with sliding channels, on digits.

    python benchmarks/measure/convolution_networks.py --output networks.csv

The networks have an eighth of the chapter's channels. Their 3 x 3 convolutions are standard ones,
or depthwise ones with a pointwise, grouped (2 groups) or sliding convolution (cg 2, co 50 %), by
`convolution.optimize(..., most=0)`. The images are scikit-learn's digits, 32 x 32 pixels after
nearest-neighbor scaling, in three equal colors. The seed determines weights, batches and the split.
Needs PyTorch and scikit-learn, but no GPU; a step's time is processor time of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from convolution_accuracy import accuracy
from study import parser, record
from torch import nn

from accelviz.convolution import NETWORKS, Kernel, Network, optimize
from accelviz.measure.records import source_commit

NAMES, NARROWER = ("VGG16", "VGG19", "MobileNet"), 8
DEPTHWISE = Kernel("dw", 3)
BLOCKS: dict[str, tuple[Kernel, ...] | None] = {
    "standard": None,
    "pointwise": (DEPTHWISE, Kernel("pw")),
    "grouped": (DEPTHWISE, Kernel("gpw", groups=2)),
    "sliding": (DEPTHWISE, Kernel("rpw", groups=2, overlap=0.5)),
}
BATCH, RATE = 32, 3e-3


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="*", default=NAMES, choices=NAMES)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=6)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    measured = rows(chosen.networks, chosen.seeds, chosen.epochs)
    record(measured, chosen.output, {"commit": source_commit()})


def rows(names: list[str], seeds: int, epochs: int) -> Iterator[dict[str, Any]]:
    """Train each network with each kind of unit, seed by seed."""
    for seed in range(seeds):
        for name in names:
            for mixing, block in BLOCKS.items():
                if name == "MobileNet" and mixing in ("standard", "pointwise"):
                    if mixing == "standard":
                        continue
                    block = None  # its units are depthwise and pointwise already
                torch.manual_seed(seed)
                network = module(NETWORKS[name])
                if block is not None:
                    network, _ = optimize(network, (3, 32, 32), block=block, most=0)
                about = {"network": name, "mixing": mixing, "seed": seed, "epochs": epochs}
                yield {**about, **trained(network, np.random.default_rng(seed), epochs)}


def unit(before: int, after: int, width: int = 3, stride: int = 1, groups: int = 1) -> list[Any]:
    """Return a convolution, its normalization and an activation."""
    options = {"padding": width // 2, "groups": groups, "bias": False}
    layers = nn.Conv2d(before, after, width, stride, **options), nn.BatchNorm2d(after), nn.ReLU()
    return [*layers]


def module(network: Network) -> nn.Module:
    """Return a module of a described network with a fraction of its channels."""
    stages = [replace(stage, channels=stage.channels // NARROWER) for stage in network.stages]
    layers, before, stride = [], 3, 1
    if network.unit == "dw+pw":
        before = network.stem[1] // NARROWER
        layers += unit(3, before)
    for stage in stages:
        for _ in range(stage.units):
            if network.unit == "dw+pw":
                layers += unit(before, before, 3, stride, before)
                layers += unit(before, stage.channels, 1)
                stride = 1
            else:
                layers += unit(before, stage.channels)
            before = stage.channels
        stride = 2
        layers += [nn.MaxPool2d(2)] if network.unit == "conv" else []
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, network.classes)
    return nn.Sequential(*layers, *head)


def trained(network: nn.Module, rng: np.random.Generator, epochs: int) -> dict[str, Any]:
    """Train on two thirds of the digits with Adam; return accuracy, parameters, time of a step."""
    from sklearn.datasets import load_digits

    images, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    images = (images.reshape(-1, 1, 8, 8) / 16 - 0.5).float()
    images = images.repeat_interleave(4, 2).repeat_interleave(4, 3).expand(-1, 3, -1, -1)
    learn, test = np.split(rng.permutation(len(labels)), [len(labels) * 2 // 3])
    n_batches, seconds = learn.size // BATCH, []
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, epochs * n_batches)
    network.train()
    for _ in range(epochs):
        for batch in rng.permutation(learn)[: n_batches * BATCH].reshape(n_batches, BATCH):
            start = time.process_time()
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
            falling.step()
            seconds.append(time.process_time() - start)
    share = accuracy(network.eval(), images[test], labels[test])
    parameters = sum(parameter.numel() for parameter in network.parameters())
    step_ms = round(1e3 * float(np.median(seconds)), 2)
    return {"test_accuracy": round(share, 4), "parameters": parameters, "step_ms": step_ms}


if __name__ == "__main__":
    main()
