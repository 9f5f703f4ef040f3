"""Test accuracy of every model at its last epoch, by seed, and the mean beside its target.

Seeds that the output already has are skipped, so that an interrupted run continues. A target is the
mean of an independent implementation, with the allowed deviation of the mean.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from study import append, parser
from tqdm import tqdm

from accelviz import layers
from accelviz.measure.records import hardware, source_commit

EPOCHS = 200
#: Target and allowed deviation in percent, on the public split.
TARGETS = {
    ("gcn", "cora"): (81.4, 0.5),
    ("gat", "cora"): (82.4, 0.5),
    ("sage", "cora"): (80.3, 0.7),
    ("agnn", "cora"): (81.9, 0.6),
    ("gin", "cora"): (76.6, 1.5),
    ("gcn", "citeseer"): (70.7, 0.5),
}
KEY = ["model", "data", "strategy", "device", "seed", "epochs"]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--cases", nargs="*", help="such as gcn:cora; all targets if not given")
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--epochs", type=int, default=EPOCHS)
    arguments.add_argument("--device", default="auto")
    arguments.add_argument("--strategy", help="of the sparse operations that it has")
    arguments.add_argument(
        "--unfused", action="store_true", help="GAT is not fused, so that it runs spmm and sddmm"
    )
    options = arguments.parse_args()
    cases = [tuple(case.split(":")) for case in options.cases or map(":".join, TARGETS)]
    table = recorded(options.output) if options.output.exists() else pd.DataFrame(columns=KEY)
    done = set(table[KEY].itertuples(index=False, name=None))
    for model, data in cases:
        epochs = options.epochs
        unfused = {"fused": False} if options.unfused and model == "gat" else {}
        for seed in tqdm(range(options.seeds), desc=f"{model} on {data}"):
            key = (model, data, options.strategy or "", options.device, seed, epochs)
            if key in done:
                continue
            trained = layers.train(
                *(model, data),
                seed=seed,
                epochs=epochs,
                device=options.device,
                strategy=options.strategy,
                progress=False,
                **unfused,
            )
            row = {
                **dict(zip(KEY, key, strict=True)),
                "test_accuracy": trained.test_accuracy,
                "val_accuracy": trained.scores["val"],
                "loss": trained.history["loss"].iloc[-1],
                "training_s": trained.history["seconds"].sum(),
                **hardware(trained.device),
                "commit": source_commit(),
            }
            append([row], options.output)
    print(summary(recorded(options.output)).to_string())


def recorded(path: Path) -> pd.DataFrame:
    """Read a table written by this script; `strategy` is "" if none was given."""
    return pd.read_csv(path, keep_default_na=False)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and deviation over seeds in percent, beside the target."""
    keys = [name for name in KEY if name != "seed"]
    grouped = table.groupby(keys)["test_accuracy"]
    means = grouped.agg(["mean", "std", "count"]).reset_index()
    means[["mean", "std"]] *= 100
    targets = [TARGETS.get(key) for key in zip(means.model, means.data, strict=True)]
    means["target"] = [target[0] if target else float("nan") for target in targets]
    means["allowed"] = [target[1] if target else float("nan") for target in targets]
    means["met"] = (means["mean"] - means["target"]).abs() <= means["allowed"]
    return means.round(2)


if __name__ == "__main__":
    main()
