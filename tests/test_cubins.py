"""The cache of machine code on disk: its key, damaged files, several processes, `warm`."""

import logging
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

import accelviz
from accelviz.devices.cuda import cubins, nvrtc, warm
from accelviz.devices.cuda.cubins import cached_cubin
from accelviz.devices.usual import usual_kernels
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.measure.ladder import ladder
from accelviz.plans import KernelSpec
from tests.graphs import graph_of_degrees

CODE = 'extern "C" __global__ void k(int *out) { out[0] = VALUE; }'
SPEC = KernelSpec("k.cu", "k", {}, ("out",), CODE, defines={"VALUE": 1})
TEMPLATE = "template <class T> __global__ void t(T *out) { out[0] = T(1); }"


@pytest.fixture(scope="module", autouse=True)
def _nvrtc():
    try:
        nvrtc.compile_cubin(SPEC, "sm_90")
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compiled here: {error}")


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """Use an empty cache; return the list of the architectures that are compiled for."""
    recorded = []

    def compile_kernel(spec, arch, *options):
        recorded.append(arch)
        return nvrtc.compile_kernel(spec, arch, *options)

    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cubins, "compile_kernel", compile_kernel)
    monkeypatch.setattr(cubins, "_private_folders", [])
    return recorded


def test_a_second_call_compiles_nothing(compilations, tmp_path):
    cubin = cached_cubin(SPEC, "sm_90")
    assert cubin.path.is_relative_to(tmp_path / "cache")
    assert cubin.path.read_bytes() == nvrtc.compile_cubin(SPEC, "sm_90")
    assert cached_cubin(SPEC, "sm_90") == cubin
    assert cached_cubin(replace(SPEC, arguments=("result",)), "sm_90") == cubin
    assert compilations == ["sm_90"]


def test_all_that_changes_the_code_is_in_the_key(compilations, monkeypatch, tmp_path):
    header = tmp_path / "mine.cuh"
    header.write_text("")
    headers = f"-I{tmp_path}"
    paths = [
        cached_cubin(SPEC, "sm_90").path,
        cached_cubin(SPEC, "sm_80").path,
        cached_cubin(SPEC, "sm_90", "-G").path,
        cached_cubin(replace(SPEC, defines={"VALUE": 2}), "sm_90").path,
        cached_cubin(replace(SPEC, code=f"{CODE} //"), "sm_90").path,
        cached_cubin(replace(SPEC, config={"n": 1}), "sm_90").path,
        cached_cubin(SPEC, "sm_90", headers).path,
    ]
    header.write_text("#define OTHER")
    paths.append(cached_cubin(SPEC, "sm_90", headers).path)
    monkeypatch.setattr(cubins, "_headers_hash", lambda folder: "of other headers")
    paths.append(cached_cubin(SPEC, "sm_90").path)
    assert len({*paths}) == len(paths) == len(compilations)


def test_headers_are_hashed_by_content(monkeypatch, tmp_path):
    monkeypatch.setattr(cubins, "kernel_names", lambda pattern: ["one.cuh"])
    (tmp_path / "one.cuh").write_text("1")
    digest = cubins._headers_hash.__wrapped__(tmp_path)
    assert cubins._headers_hash.__wrapped__(tmp_path) == digest
    (tmp_path / "one.cuh").write_text("2")
    assert cubins._headers_hash.__wrapped__(tmp_path) != digest


def test_templates_have_the_name_that_the_module_exports(compilations):
    names = {}
    for kind in ("int", "float"):
        spec = KernelSpec("t.cu", f"t<{kind}>", {}, ("out",), TEMPLATE)
        cubin = cached_cubin(spec, "sm_90")
        assert cubin.function.encode() in cubin.path.read_bytes()
        assert cached_cubin(spec, "sm_90") == cubin
        names[kind] = cubin.function
    assert names == {"int": "_Z1tIiEvPT_", "float": "_Z1tIfEvPT_"}
    assert len(compilations) == 2


def test_kernels_of_one_file_share_machine_code(compilations):
    plan = accelviz.plan("cora", operation="gat", strategy="fusegnn_gas")
    kernels = [call.kernel for call in plan.calls]
    stored = [cached_cubin(spec, "sm_90") for spec in kernels if "attention" in spec.file]
    assert len({cubin.path for cubin in stored}) == 1 < len(stored)
    assert [cubin.function for cubin in stored] == [
        spec.entry for spec in kernels if "attention" in spec.file
    ]


@pytest.mark.parametrize("ending", [".cubin", ".name"])
@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"", None])
def test_a_damaged_file_is_compiled_again(compilations, ending, damage):
    path = cached_cubin(SPEC, "sm_90").path
    content, damaged = path.read_bytes(), path.with_suffix(ending)
    if damage is None:
        damaged.unlink()
    else:
        damaged.write_bytes(damage(damaged.read_bytes().strip()))
    assert cached_cubin(SPEC, "sm_90").path.read_bytes() == content
    cached_cubin(SPEC, "sm_90")
    assert len(compilations) == 2


def test_a_folder_that_cannot_be_written_to(compilations, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    cubin = cached_cubin(SPEC, "sm_90")
    assert cubin.path.exists()
    assert not cubin.path.is_relative_to(tmp_path / "cache")
    assert cached_cubin(SPEC, "sm_90") == cubin
    assert len(compilations) == 1


def test_a_full_disk(compilations, monkeypatch, tmp_path):
    write_to = cubins._write_to

    def full(directory, *content):
        if directory.is_relative_to(tmp_path / "cache"):
            raise OSError("no space left on device")
        return write_to(directory, *content)

    monkeypatch.setattr(cubins, "_write_to", full)
    assert cached_cubin(SPEC, "sm_90").path.exists()


def test_an_error_leaves_no_file(compilations, tmp_path):
    with pytest.raises(KernelError, match=r"k.cu: it does not compile for sm_90(?s:.*)nonsense"):
        cached_cubin(replace(SPEC, code=CODE.replace("VALUE", "nonsense")), "sm_90")
    assert not [*tmp_path.rglob("*.*")]


def test_the_user_is_told_once(compilations, caplog):
    cubins._announce_compilation.cache_clear()
    caplog.set_level(logging.WARNING, "accelviz")
    for arch in ("sm_90", "sm_80", "sm_90"):
        cached_cubin(SPEC, arch)
    (record,) = caplog.records
    assert str(cubins.folder()) in record.getMessage()
    assert "\n" not in record.getMessage()


@pytest.mark.long
def test_two_processes_at_once(compilations):
    """Both compile, or one finds the other's file; afterwards the file is whole."""
    script = (
        "from tests.test_cubins import SPEC, cached_cubin\n"
        "print(cached_cubin(SPEC, 'sm_90').path.read_bytes()[:4])"
    )
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in running]
    assert outputs == [str(b"\x7fELF") + "\n"] * 2
    cached_cubin(SPEC, "sm_90")
    assert not compilations
    assert len([*cubins.folder().iterdir()]) == 2


def test_warm_compiles_each_file_once(compilations):
    other = replace(SPEC, defines={"VALUE": 2})
    only_hopper = replace(SPEC, code=f"{CODE} // a", arch="sm_90a")
    portable = replace(SPEC, code=f"{CODE} // b", arch="sm_90a", portable=True)
    newer = replace(SPEC, code=f"{CODE} // c", capability=90)
    specs = [SPEC, other, SPEC, only_hopper, portable, newer]
    warmed = warm(specs, "sm_90")
    assert [kernel.spec for kernel in warmed] == [SPEC, other, only_hopper, portable, newer]
    assert all(kernel.seconds > 0 for kernel in warmed)
    assert Counter(compilations) == {"sm_90": 3, "sm_90a": 2}
    assert all(kernel.seconds == 0 for kernel in warm(specs, "sm_90"))
    assert [kernel.spec for kernel in warm(specs, "sm_80")] == [SPEC, other, portable]
    assert len(compilations) == 8
    cached_cubin(SPEC, "sm_90")
    assert len(compilations) == 8


def test_usual_kernels_are_those_of_plans():
    kernels = [(spec.configured_source(), spec.entry) for spec in usual_kernels()]
    cora = accelviz.load_graph("cora")
    for operation, widths in (
        ("spmm", {"n_cols": 64}),
        ("spmm", {"n_cols": 16}),
        ("sddmm", {"n_cols": 32}),
        ("gat", {"n_cols": 8, "heads": 8}),
        ("gat_gradient", {"n_cols": 16}),
        ("spmm_max", {"n_cols": 256}),
    ):
        plan = accelviz.plan(cora, "lane_groups", operation=operation, **widths)
        for _, call in plan.part_calls:
            assert (call.kernel.configured_source(), call.kernel.entry) in kernels


def test_settings_of_large_graphs_are_among_the_usual_kernels():
    kernels = [spec.config for spec in usual_kernels() if spec.file == "spmm/lane_groups.cu"]
    graph = graph_of_degrees([16] * 9_000)
    small = accelviz.plan(graph, "lane_groups", 32).kernel
    large = accelviz.plan(graph, "lane_groups", 32, group_nzs=64, short_nzs=8, at_once=2).kernel
    large = replace(large, config={**large.config, "blocks_per_sm": 16})
    assert small.config in kernels
    assert large.config in kernels


@pytest.mark.long
@pytest.mark.parametrize("degree", [3, 11, 12, 40])
@pytest.mark.parametrize("operation", ["spmm", "sddmm"])
def test_rows_of_all_lengths_have_usual_kernels(operation, degree):
    kernels = {(spec.configured_source(), spec.entry) for spec in usual_kernels()}
    graph = graph_of_degrees([degree] * (1_100_000 // degree))
    for n_cols in (16, 64, 256):
        kernel = accelviz.plan(graph, "lane_groups", n_cols, operation=operation).calls[0].kernel
        assert (kernel.configured_source(), kernel.entry) in kernels


@pytest.mark.long
def test_spilled_registers_of_the_ladder():
    """Lesson 10 and the elective on the ladder: 16-byte loads spill at 32 columns."""
    cupy_nvrtc = nvrtc.import_cupy().cuda.nvrtc

    def used_and_spilled(rung, columns, room):
        strategy, settings = ladder()[rung]
        plan = accelviz.plan("cora", strategy, columns, **settings, blocks_per_sm=room)
        spec = plan.calls[0].kernel
        program = cupy_nvrtc.createProgram(spec.configured_source(), spec.file, [], [])
        options = [*nvrtc.compile_options(spec), "-arch=sm_90", "--ptxas-options=-v"]
        cupy_nvrtc.compileProgram(program, options)
        log = cupy_nvrtc.getProgramLog(program)
        words = (r"Used (\d+) registers", r"(\d+) bytes spill stores")
        return [int(re.search(text, log)[1]) for text in words]

    # Rooms of the recorded plans: tests/test_lesson_numbers.py.
    registers, spilled = used_and_spilled("16-byte loads", 32, 16)
    assert registers == 32
    assert spilled > 100
    assert 0.1 < used_and_spilled("nonzeros staged", 32, 16)[1] / spilled < 0.3
    assert used_and_spilled("16-byte loads", 32, 8) == [64, 0]
    for case in (("lane groups", 32, 8), ("16-byte loads", 128, 6), ("nonzeros staged", 32, 8)):
        assert used_and_spilled(*case)[1] == 0
