"""The contracts: what an operation, a strategy and a plan are."""

from accelviz.plans.launch import Call, KernelSpec, LaunchConfig, LibraryCall
from accelviz.plans.operation import Operand, Operation
from accelviz.plans.plan import Plan
from accelviz.plans.reading import Reading
from accelviz.plans.strategy import Parameter, Strategy

__all__ = [
    "Call",
    "KernelSpec",
    "LaunchConfig",
    "LibraryCall",
    "Operand",
    "Operation",
    "Parameter",
    "Plan",
    "Reading",
    "Strategy",
]
