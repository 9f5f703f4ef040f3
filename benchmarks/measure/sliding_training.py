"""Time and memory of training steps of image networks with sliding channels, on a GPU.

    python benchmarks/measure/sliding_training.py --output steps.csv

Figures 6.7, 6.8 and 6.10 to 6.13 of the thesis: the networks of `image_networks` on random images,
whose 3 x 3 convolutions are depthwise ones and sliding channels, by ours (3xTF32 and TF32), by the
chapter's two rivals composed of PyTorch's operations (`channel_stack` is its PyTorch-Base,
`convolution_stack` its PyTorch-Opt) and as a dense product with zeros (`masked`); beside them the
standard and the pointwise network. All but "sliding" let cuDNN and cuBLAS round to TF32. A step is
forward, backward and SGD of images in channels_last. A row of the CSV is a network, image size,
batch, kind and setting: the times of `steps` steps by CUDA events, the peak of memory above that
before the network was made, and parameters; or the error, such as too little memory.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from image_networks import NETWORKS, image_network, n_parameters
from study import append, full_machine, parser, reset_torch_memory, step_milliseconds
from torch import nn

KINDS = ("sliding", "tf32", "masked", "convolution_stack", "channel_stack")
#: Groups and overlap in percent: those of Figures 6.7 and 6.8, of 6.11 and of 6.12.
SETTINGS = ((2, 50), (4, 50), (8, 50), (2, 25), (2, 75))
#: Images of Figure 6.13, and networks.
BATCHES, BATCH_NETWORKS = (16, 32, 64, 256, 512, 1024), ("VGG16", "MobileNet", "ResNet18")
USUAL_BATCH = {32: 128, 224: 32}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="*", default=[*NETWORKS], choices=NETWORKS)
    options.add_argument("--pixels", nargs="*", type=int, default=(32, 224))
    options.add_argument("--steps", type=int, default=15, help="timed steps of a case")
    options.add_argument("--limit", type=float, default=400, help="seconds, then no new case")
    options.add_argument("--narrower", type=int, default=1, help="to try the script on a CPU")
    options.add_argument("--device", default="cuda")
    chosen = options.parse_args()
    start, machine = time.monotonic(), full_machine(chosen.device)
    for case in cases(chosen):
        row = dict(zip(("network", "pixels", "batch", "kind", "cg", "co"), case, strict=True))
        if time.monotonic() - start > chosen.limit:
            row["error"] = f"not run: limit of {chosen.limit:.0f} s"
        else:
            try:
                row |= measured(chosen, **row)
            except torch.cuda.OutOfMemoryError as error:
                row["error"] = str(error).partition(". GPU")[0]
        append([row | machine | {"torch": torch.__version__}], chosen.output)
        print(*row.values(), flush=True)


def cases(options: Any) -> Iterator[tuple[str, int, int, str, int | None, int | None]]:
    """Yield the cases, those of the smaller images and the usual batch first."""
    for pixels, name in itertools.product(options.pixels, options.networks):
        batch = USUAL_BATCH[pixels]
        for kind in ("standard", "pointwise"):
            if (name, kind) != ("MobileNet", "standard"):  # it is "pointwise"
                yield name, pixels, batch, kind, None, None
        for (cg, co), kind in itertools.product(SETTINGS, KINDS):
            yield name, pixels, batch, kind, cg, co
    for name, batch, kind in itertools.product(BATCH_NETWORKS, BATCHES, ("sliding", "tf32")):
        if name in options.networks and 32 in options.pixels:
            yield name, 32, batch, kind, 2, 50


def measured(
    options: Any, network: str, pixels: int, batch: int, kind: str, cg: Any, co: Any
) -> dict[str, Any]:
    """Return the measurements of a case."""
    device, is_gpu = options.device, options.device != "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind != "sliding"
    if is_gpu:
        reset_torch_memory()
        before = torch.cuda.memory_allocated()
    classes, setting = 10 if pixels == 32 else 1000, (cg or 2, (co or 50) / 100)
    sizes = {"pixels": pixels, "classes": classes, "narrower": options.narrower}
    torch.manual_seed(0)
    module = image_network(network, kind, *setting, **sizes)
    module = module.to(device, memory_format=torch.channels_last)
    images = torch.randn(batch, 3, pixels, pixels, device=device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(classes, (batch,), device=device)
    optimiser = torch.optim.SGD(module.parameters(), 1e-3)

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(images), labels).backward()
        optimiser.step()

    for _ in range(3):
        step()
    milliseconds = step_milliseconds(step, options.steps, is_gpu)
    low, median, high = np.percentile(milliseconds, [10, 50, 90])
    row = {"median_ms": median, "p10_ms": low, "p90_ms": high, "steps": options.steps}
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if is_gpu else None
    return {**row, "peak_mib": peak, "parameters": n_parameters(module)}


if __name__ == "__main__":
    main()
