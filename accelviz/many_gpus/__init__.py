"""Products on several GPUs: a graph split over them, MGG as published, and ours.

Chapter 4 of the thesis (MGG, OSDI 2023). `split` deals a graph out, `plan` says what each device
does, `run` does it on GPUs, on pretended ones or on the CPU, and `predict` says how long it should
take, or whether one GPU is enough (docs/many-gpus.md).
"""

from accelviz.many_gpus.launch import Place, place
from accelviz.many_gpus.model import Prediction, Rates, Work, advise, gains, predict
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.published import Setting, search
from accelviz.many_gpus.rates import measured_rates, rates_of
from accelviz.many_gpus.run import SCHEMES, plan, run, spmm
from accelviz.many_gpus.split import Part, Split, edge_ranges, split
from accelviz.many_gpus.steps import Program, Step
from accelviz.many_gpus.symmetric import Symmetric
from accelviz.many_gpus.train import Training, train

__all__ = [
    "SCHEMES",
    "Part",
    "Peers",
    "Place",
    "Prediction",
    "Program",
    "Rates",
    "Setting",
    "Split",
    "Step",
    "Symmetric",
    "Training",
    "Work",
    "advise",
    "edge_ranges",
    "gains",
    "measured_rates",
    "place",
    "plan",
    "predict",
    "rates_of",
    "run",
    "search",
    "split",
    "spmm",
    "train",
]
