"""Every kernel compiles for every supported architecture, with no GPU present."""

import dataclasses
import re
import tempfile

import pytest
from elftools.elf.elffile import ELFFile

import accelviz
from accelviz import files
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.executors.cuda import compile_cubin
from accelviz.executors.cuda.timeline import MARK, SWITCH
from accelviz.plans import KernelSpec
from tests.graphs import graph_of_degrees
from tests.inherited import KERNELS, case_name

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
GRAPH = graph_of_degrees([1, 2, 3])
#: Every kernel with the plan's defaults, and the settings that choose another file or other code.
VARIANTS = [
    *((name, {}) for name in KERNELS),
    ("accel_gcn", {"partition": "warp"}),
    ("accel_gcn", {"combined_warp": False}),
    ("accel_gcn", {"partition": "warp", "combined_warp": False}),
]


def kernel_of(strategy, n_cols=64, **parameters) -> KernelSpec:
    kernel = accelviz.plan(GRAPH, strategy, n_cols, **parameters).kernel
    assert kernel is not None
    return kernel


@pytest.fixture(scope="module", autouse=True)
def _nvrtc():
    try:
        compile_cubin(kernel_of("accel_gcn"), "sm_90")
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("strategy", "parameters"), VARIANTS)
def test_compiles_to_machine_code(strategy, parameters, arch):
    for n_cols in (1, 64, 96, 257, 5000):
        assert compile_cubin(kernel_of(strategy, n_cols, **parameters), arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("setting", [(1, 1), (2, 2), (5, 7), (32, 32), (1, 65535)])
def test_accel_gcn_compiles_for_any_setting(setting):
    spec = kernel_of("accel_gcn", 2000, max_block_warps=setting[0], max_warp_nzs=setting[1])
    assert compile_cubin(spec, "sm_75")


@pytest.mark.parametrize(("strategy", "parameters"), VARIANTS)
def test_refuses_to_compile_without_the_plan_s_constants(strategy, parameters):
    spec = kernel_of(strategy, **parameters)
    for name in spec.defines:
        rest = {key: value for key, value in spec.defines.items() if key != name}
        with pytest.raises(KernelError, match="does not compile for sm_90"):
            compile_cubin(dataclasses.replace(spec, defines=rest), "sm_90")


@pytest.mark.parametrize(("strategy", "parameters"), VARIANTS)
def test_takes_the_arguments_that_the_plan_names(strategy, parameters):
    plan = accelviz.plan(GRAPH, strategy, **parameters)
    spec = plan.kernel
    signature = re.search(rf"\b{spec.entry}\(([^)]*)\)", spec.source()).group(1)
    names = [re.search(r"(\w+)\s*$", part).group(1) for part in signature.split(",")]
    assert tuple(names) == spec.arguments
    assert set(names) - {*plan.operation.operands} == {*plan.arrays, *plan.scratch}


def test_a_kernel_that_does_not_exist_is_named():
    spec = dataclasses.replace(kernel_of("accel_gcn"), file="none.cu")
    with pytest.raises(KernelError, match=r"none.cu: no such kernel .*accel_gcn.cu"):
        spec.source()


def test_every_kernel_file_belongs_to_a_strategy():
    used = {kernel_of(strategy, **parameters).file for strategy, parameters in VARIANTS}
    there = {path.name for path in files.kernel_directory().glob("*.cu")}
    # machine.cu measures the machine; preprocess.cu works before a plan (test_preprocessing.py)
    assert used == there - {"machine.cu", "preprocess.cu"}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_measures_the_machine_compiles(arch):
    for entry in ("nothing", "pause", "gather"):
        spec = KernelSpec("machine/machine.cu", entry, {"LOADS_IN_FLIGHT": 8}, ())
        assert compile_cubin(spec, arch)


@pytest.mark.parametrize(("strategy", "parameters"), VARIANTS)
def test_the_switch_that_records_warps_is_on_the_first_line_and_costs_nothing_when_off(
    strategy, parameters
):
    spec = kernel_of(strategy, **parameters)
    body = spec.source().partition('extern "C"')[2].partition(") {")[2]
    assert body.split()[0] == f"{MARK};"
    without = dataclasses.replace(spec, code=spec.source().replace(f"{MARK};", ""))
    assert code_of(spec) == code_of(without)
    on = dataclasses.replace(spec, defines={**spec.defines, SWITCH: 1})
    assert code_of(on) != code_of(spec)


def code_of(spec) -> bytes:
    """The machine code alone: line numbers and the options' digest differ from build to build."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_cubin(spec, "sm_90"))
        file.flush()
        with open(file.name, "rb") as opened:
            section = ELFFile(opened).get_section_by_name(f".text.{spec.entry}")
            return section.data()
