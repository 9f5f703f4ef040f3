"""The contracts: what an operation, a strategy and a plan are."""

from accelviz.plans.description import Description, LaneColumns, WorkerLanes
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig, LibraryCall
from accelviz.plans.operation import Operand, Operation
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Setting, Settings, setting
from accelviz.plans.strategy import Strategy

__all__ = [
    "Buffers",
    "Call",
    "Description",
    "KernelSpec",
    "LaneColumns",
    "LaunchConfig",
    "Layout",
    "LibraryCall",
    "Operand",
    "Operation",
    "Plan",
    "Provenance",
    "Setting",
    "Settings",
    "Strategy",
    "Widths",
    "WorkerLanes",
    "setting",
]
