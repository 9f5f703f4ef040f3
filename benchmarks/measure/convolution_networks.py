"""Test accuracy of the thesis's image networks with several convolutions and depths, on digits.

    python benchmarks/measure/convolution_networks.py --output networks.csv

The networks are those of `image_networks`, on a CPU with an eighth of the channels (`--narrower`).
Their 3 x 3 convolutions are standard ones, or depthwise ones with a pointwise, grouped (2 groups)
or sliding convolution (cg 2, co 50 %); "organized" are standard ones with the depths of Table 7.3.
The images are scikit-learn's digits, 32 x 32 pixels after nearest-neighbor scaling, in three equal
colors. The seed determines weights, batches and the split. Needs PyTorch and scikit-learn. On a
CPU, a step's time is processor time of one thread; on a GPU, of the host, which waits for the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from convolution_accuracy import accuracy
from image_networks import NETWORKS, image_network, n_parameters
from study import parser, record
from torch import nn

from accelviz.measure.records import source_commit

#: Depths of the stages after the organizer, as printed in Table 7.3 or, for the VGGs, fitting it.
ORGANIZED = {
    "VGG16": (5, 4, 2, 1, 1),
    "VGG19": (6, 4, 3, 2, 1),
    "MobileNet": (4, 4, 2, 2, 1),
    "ResNet50": (5, 5, 4, 2),
}
KINDS = ("standard", "pointwise", "grouped", "sliding", "organized")
BATCH, RATE = 32, 3e-3


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="*", default=[*NETWORKS], choices=NETWORKS)
    options.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--narrower", type=int, default=8, help="divisor of the channels")
    options.add_argument("--device", default="cpu")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    record(rows(chosen), chosen.output, {"commit": source_commit(), "device": chosen.device})


def rows(options: Any) -> Iterator[dict[str, Any]]:
    """Train each network with each kind of convolution, seed by seed."""
    for seed in range(options.seeds):
        for name in options.networks:
            for kind in options.kinds:
                depths = ORGANIZED.get(name) if kind == "organized" else None
                is_twin = kind == "standard" and name == "MobileNet"  # it is "pointwise"
                if is_twin or (kind == "organized" and depths is None):
                    continue
                torch.manual_seed(seed)
                mixing = "standard" if depths else kind
                network = image_network(name, mixing, narrower=options.narrower, depths=depths)
                about = {"network": name, "mixing": kind, "seed": seed, "epochs": options.epochs}
                about["narrower"] = options.narrower
                yield {**about, **trained(network.to(options.device), seed, options)}


def trained(network: nn.Module, seed: int, options: Any) -> dict[str, Any]:
    """Train on two thirds of the digits with Adam; return accuracy, parameters, time of a step."""
    from sklearn.datasets import load_digits

    rng, is_gpu = np.random.default_rng(seed), options.device != "cpu"
    images, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    images = (images.reshape(-1, 1, 8, 8) / 16 - 0.5).float()
    images = images.repeat_interleave(4, 2).repeat_interleave(4, 3).expand(-1, 3, -1, -1)
    images, labels = images.to(options.device), labels.to(options.device)
    learn, test = np.split(rng.permutation(len(labels)), [len(labels) * 2 // 3])
    n_batches, seconds = learn.size // BATCH, []
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, options.epochs * n_batches)
    network.train()
    for _ in range(options.epochs):
        for batch in rng.permutation(learn)[: n_batches * BATCH].reshape(n_batches, BATCH):
            start = _seconds(is_gpu)
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
            falling.step()
            seconds.append(_seconds(is_gpu) - start)
    share = accuracy(network.eval(), images[test], labels[test])
    step_ms = round(1e3 * float(np.median(seconds)), 2)
    sizes = {"parameters": n_parameters(network), "step_ms": step_ms}
    return {"test_accuracy": round(share, 4), **sizes}


def _seconds(is_gpu: bool) -> float:
    if not is_gpu:
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
