"""Every kernel compiles for every supported architecture, with no GPU present."""

import dataclasses
import functools
import re

import pytest

import accelviz
from accelviz import files
from accelviz.devices.cuda import compile_cubin
from accelviz.devices.cuda.nvrtc import compile_options, import_cupy
from accelviz.devices.cuda.timeline import MARK, SWITCH
from accelviz.errors import DeviceUnavailable, KernelError, PartitionError
from accelviz.plans import KernelSpec
from accelviz.strategies import SDDMM, SPMM
from tests.graphs import graph_of_degrees
from tests.inherited import KERNELS, case_name

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
COLUMNS = (1, 64, 96, 257, 5000)
GRAPH = graph_of_degrees([1, 2, 3])
#: Every strategy with its defaults, and settings that select another file or other code.
VARIANTS = [
    *((strategy, {}) for strategy in KERNELS),
    ("accel_gcn", {"partition": "warp"}),
    ("accel_gcn", {"combined_warp": False}),
    ("accel_gcn", {"partition": "warp", "combined_warp": False}),
]
each_variant = pytest.mark.parametrize(("strategy", "parameters"), VARIANTS, ids=case_name)


def kernels_of(strategy, n_cols=64, **parameters) -> list[KernelSpec]:
    """Return the kernels of all calls of a plan, including those of its following plans."""
    plan = accelviz.plan(GRAPH, strategy, n_cols, **parameters)
    kernels = [call.kernel for _, call in plan.part_calls]
    assert None not in kernels
    return kernels


def kernel_of(strategy, n_cols=64, **parameters) -> KernelSpec:
    (kernel,) = kernels_of(strategy, n_cols, **parameters)
    return kernel


def own_kernels(strategy, parameters, n_cols=64) -> list[KernelSpec]:
    """Return the kernels of a variant that no earlier strategy has.

    Kernels are equal if file, entry and names of constants are. All kernels of a variant with
    parameters are returned.
    """
    if parameters:
        return kernels_of(strategy, n_cols, **parameters)
    specs = {_kind(spec): spec for spec in kernels_of(strategy, n_cols, **parameters)}
    for earlier, setting in VARIANTS[: VARIANTS.index((strategy, parameters))]:
        for spec in kernels_of(earlier, n_cols, **setting):
            specs.pop(_kind(spec), None)
    return [*specs.values()]


def _kind(spec):
    return spec.file, spec.entry, tuple(spec.config)


def arch_of(spec, arch="sm_90"):
    """Return the architecture to compile for: the kernel's own if it is not portable."""
    return spec.arch if spec.arch and not spec.portable else arch


def without(spec, member):
    rest = {key: value for key, value in spec.config.items() if key != member}
    return dataclasses.replace(spec, config=rest)


@pytest.fixture(scope="module", autouse=True)
def _nvrtc():
    try:
        compile_cubin(kernel_of("row_thread"), "sm_90")
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")


@pytest.mark.sample(6)
@each_variant
def test_compiles_to_machine_code(strategy, parameters):
    """Compile for every column count and architecture; variants pair them in turn."""
    specs = functools.partial(kernels_of, strategy, **parameters)
    check_compiles(strategy, parameters, range(pairs_a_day(strategy)), specs)


@pytest.mark.long
@each_variant
def test_compiles_to_machine_code_with_the_other_pairs(strategy, parameters):
    """Compile the kernels that no earlier variant has.

    Operations beyond SpMM and SDDMM share device code, so each variant of theirs has every second
    of the other pairs, and the next variant those between.
    """
    first = pairs_a_day(strategy)
    pairs = range(first, len(COLUMNS))
    if first == 1:
        pairs = pairs[VARIANTS.index((strategy, parameters)) % 2 :: 2]
    check_compiles(
        strategy, parameters, pairs, functools.partial(own_kernels, strategy, parameters)
    )


def pairs_a_day(strategy):
    """Return the number of column counts in `make test`; operations that share kernels take 1."""
    return 2 if strategy not in KERNELS or strategy.operation in (SPMM, SDDMM) else 1


def check_compiles(strategy, parameters, pairs, specs_for):
    done = set()
    turn = VARIANTS.index((strategy, parameters))
    for i in pairs:
        n_cols = COLUMNS[(turn + i) % len(COLUMNS)]
        arch = ARCHITECTURES[(turn // len(COLUMNS) + i) % len(ARCHITECTURES)]
        try:
            specs = specs_for(n_cols=n_cols)
        except PartitionError as error:  # a head too wide for registers
            assert "n_cols" in str(error)  # noqa: PT017
            continue
        for spec in specs:
            own_arch = arch_of(spec, arch)
            case = spec.entry, tuple(spec.config.items()), own_arch
            if own_arch == arch and int(arch.removeprefix("sm_")) < spec.capability:
                with pytest.raises(KernelError, match=f"sm_{spec.capability}"):
                    compile_cubin(spec, arch)
            elif case not in done:
                assert compile_cubin(spec, own_arch)[:4] == b"\x7fELF"
            done.add(case)


@pytest.mark.parametrize("setting", [(1, 1), (2, 2), (5, 7), (32, 32), (1, 65535)])
def test_accel_gcn_compiles_for_any_setting(setting):
    spec = kernel_of("accel_gcn", 2000, max_block_warps=setting[0], max_warp_nzs=setting[1])
    assert compile_cubin(spec, "sm_75")


@pytest.mark.sample(3)
@each_variant
def test_refuses_to_compile_without_the_plan_s_constants(strategy, parameters):
    """Compile without any constant; each one that the errors do not name is left out alone."""
    for spec in own_kernels(strategy, parameters):
        with pytest.raises(KernelError) as caught:
            compile_cubin(dataclasses.replace(spec, config={}), arch_of(spec))
        named = caught.value.expected.partition(" in KernelSpec")[0].split(", ")
        for name in spec.config.keys() - {*named}:
            with pytest.raises(KernelError, match=f'"Config" has no member "{name}"'):
                compile_cubin(without(spec, name), arch_of(spec))


@each_variant
def test_takes_the_arguments_that_the_plan_names(strategy, parameters):
    plan = accelviz.plan(GRAPH, strategy, **parameters)
    used, stored = set(), set()
    for part in plan.parts:
        stored |= {*part.arrays, *part.buffers.zeroed_workspace, *part.buffers.workspace}
    for spec in kernels_of(strategy, **parameters):
        entry = spec.entry.partition("<")[0]
        source = re.sub(r"#ifdef ITEMS.*?#endif", "", spec.source(), flags=re.DOTALL)
        signature = re.search(rf"\b{entry}\(([^)]*)\)", source)[1]
        names = [re.search(r"(\w+)\s*$", part)[1] for part in signature.split(",")]
        assert tuple(names) == spec.arguments
        used |= {*names}
    assert used - {*plan.operation.operands} == stored


def test_a_kernel_that_does_not_exist_is_named():
    spec = dataclasses.replace(kernel_of("accel_gcn"), file="none.cu")
    with pytest.raises(KernelError, match=r"none.cu: there is no such .*code=text.*accel_gcn.cu"):
        spec.source()


def test_every_kernel_file_belongs_to_a_strategy():
    used = {spec.file for strategy, options in VARIANTS for spec in kernels_of(strategy, **options)}
    # Kernels that belong to no strategy: machine.cu measures the GPU, preprocess.cu and
    # translation.cu run before a plan (test_preprocessing.py, test_windows.py), bits/
    # (test_bits.py) and layers/ (test_dense_kernels.py, test_affine_kernels.py) are not on
    # nonzeros, and many_gpus/ runs on several GPUs.
    others = {"machine/machine.cu", "spmm/preprocess.cu", "tensor_cores/translation.cu"}
    others |= {
        "spmm/edge_blocks.cu",
        "spmm/edge_sums.cu",
    }  # of accelviz.torch (test_torch_device.py)
    others |= {"bits/pack.cu", "bits/rates.cu"}
    rooms = ("layers/", "many_gpus/")
    others |= {name for name in files.kernel_names() if name.startswith(rooms)}
    assert used == {*files.kernel_names()} - others


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_measures_the_machine_compiles(arch):
    for entry in ("nothing", "pause", "gather"):
        spec = KernelSpec("machine/machine.cu", entry, {"loads_in_flight": 8}, ())
        assert compile_cubin(spec, arch)


@each_variant
def test_the_switch_that_records_warps_is_on_the_first_line(strategy, parameters):
    for spec in own_kernels(strategy, parameters, 1):
        for kernel in re.split(r"\b__global__\b", spec.source())[1:]:
            assert kernel.partition(") {")[2].split()[0] == f"{MARK};"


def test_only_one_header_defines_the_macro_that_records_warps():
    """Without the switch the macro is empty, and no kernel sees another one."""
    texts = {
        name: (files.kernel_directory() / name).read_text("utf-8")
        for name in files.kernel_names("*.cu*")
    }
    common = texts.pop("common.cuh")
    defined = re.findall(rf"^#(?:ifdef|else|endif)\b.*|^#define {MARK}\b.*", common, re.MULTILINE)
    empty = defined.index(f"#define {MARK}")
    assert defined[empty - 3] == f"#ifdef {SWITCH}"
    assert defined[empty - 1 : empty + 2 : 2] == ["#else", "#endif"]
    redefined = re.compile(rf"{SWITCH}|#\s*(?:define|undef)\s+{MARK}")
    assert [name for name, text in texts.items() if redefined.search(text)] == []


@pytest.mark.sample(10)
@each_variant
def test_the_switch_that_records_warps_costs_nothing_when_off(strategy, parameters):
    """The macro is the same in all kernels, so one kernel of each folder is compiled without it.

    With the switch, one kernel of each file is compiled.
    """
    for spec in first_of_files(strategy, parameters):
        code = code_of(dataclasses.replace(spec, defines={SWITCH: 1}))
        if spec.file == first_file_of(spec.file.partition("/")[0]):
            bare = dataclasses.replace(spec, code=spec.source().replace(f"{MARK};", ""))
            assert code_of(spec) == code_of(bare)
            assert code != code_of(spec)


def first_of_files(strategy, parameters) -> list[KernelSpec]:
    """Return a kernel of each file of which no earlier variant has one."""
    earlier = files_before(VARIANTS.index((strategy, parameters)))
    specs = {spec.file: spec for spec in kernels_of(strategy, 1, **parameters)}
    return [spec for file, spec in specs.items() if file not in earlier]


@functools.cache
def files_before(position) -> set[str]:
    """Return the files of the kernels of all variants before a position."""
    return {
        spec.file
        for strategy, parameters in VARIANTS[:position]
        for spec in kernels_of(strategy, 1, **parameters)
    }


@functools.cache
def first_file_of(folder) -> str:
    return next(
        spec.file
        for strategy, parameters in VARIANTS
        for spec in kernels_of(strategy, 1, **parameters)
        if spec.file.startswith(f"{folder}/")
    )


def code_of(spec) -> bytes:
    """Return PTX without line numbers, which takes half the time of a cubin."""
    nvrtc = import_cupy().cuda.nvrtc
    options = [option for option in compile_options(spec) if option != "-lineinfo"]
    program = nvrtc.createProgram(spec.configured_source(), spec.file, [], [])
    if "<" in spec.entry:
        nvrtc.addNameExpression(program, spec.entry)
    nvrtc.compileProgram(program, [f"-arch={arch_of(spec).replace('sm', 'compute')}", *options])
    return nvrtc.getPTX(program)
