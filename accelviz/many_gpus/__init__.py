"""Sparse products on several GPUs (chapter 4 of the thesis: MGG, OSDI 2023).

`split` divides a graph among devices, `plan` returns the program of all devices, by MGG's scheme as
published or by ours, `run` runs it on GPUs, on the emulator or on the CPU, and `predict` estimates
its time, to decide whether one GPU is enough (docs/many-gpus.md).
"""

from accelviz.many_gpus.model import Prediction, Work, advise, gains, predict
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.process import Process, this_process
from accelviz.many_gpus.program import SplitProgram
from accelviz.many_gpus.published import Setting, search
from accelviz.many_gpus.rates import Rates, measured_rates, rates_of
from accelviz.many_gpus.run import SCHEMES, plan, run, spmm
from accelviz.many_gpus.split import Part, Split, edge_ranges, split
from accelviz.many_gpus.step import StepPrediction, predict_step
from accelviz.many_gpus.symmetric import Symmetric
from accelviz.plans.program import Program, Step

__all__ = [
    "SCHEMES",
    "Part",
    "Peers",
    "Prediction",
    "Process",
    "Program",
    "Rates",
    "Setting",
    "Split",
    "SplitProgram",
    "Step",
    "StepPrediction",
    "Symmetric",
    "Work",
    "advise",
    "edge_ranges",
    "gains",
    "measured_rates",
    "plan",
    "predict",
    "predict_step",
    "rates_of",
    "run",
    "search",
    "split",
    "spmm",
    "this_process",
]
