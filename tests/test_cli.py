"""The commands `demo` and `doctor`, and their messages."""

import importlib.util
import re
import subprocess
import sys
import types
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz import cli, demo, plots
from accelviz.devices import gpu_state
from accelviz.devices.cuda import compile_cubin
from accelviz.devices.cuda import state as cuda
from accelviz.errors import DeviceUnavailable
from accelviz.plots.overviews import _degree_bounds, _example_blocks
from tests.graphs import MADE
from tests.plots.pictures import cut_off

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def test_the_demo_prints_a_table_and_draws_a_picture(tmp_path, capsys):
    picture = tmp_path / "cora.png"
    assert cli.main(["demo", "--output", str(picture)]) == 0
    printed = capsys.readouterr().out
    for line in (
        r"graph +cora: 2,708 rows, 10,556 nonzeros",
        r"degrees +3.9 on average, 168 at most",
        r"blocks +252 of 12 warps, at most 32 nonzeros a combined warp",
        r"warps +3,024 launched, 2,838 with work",
        r"idle share +16\.2% of warp time, against 45\.5% for the warp-level partition",
        r"metadata +4,032 bytes, 9\.2% of the warp-level partition's 43,600",
        r"set-up +[\d.]+ ms for degree sort, permute rows, block partition",
        r"on cpu +[\d.,]+ us for 64 columns, median of 20",
        r"correct: error at most 0\.\d\d of the float32 bound against float64",
        r"on cuda",
        r"recorded +us, the same product on one NVIDIA H200, recorded on 20\d\d-\d\d-\d\d",
        r"a thread a row [\d.]+; a warp a row",
        r"make lab",
    ):
        assert re.search(line, printed), line
    assert [path.name for path in tmp_path.iterdir()] == ["cora.png"]
    pixels = matplotlib.image.imread(picture)
    assert min(pixels.shape[:2]) > 800
    assert pixels[..., :3].std() > 0.05  # something was drawn


@pytest.mark.long
@pytest.mark.parametrize("name", ["empty", "no_columns", "one_node", "no_edges", "every_kind"])
def test_the_demo_takes_any_graph(name, tmp_path):
    graph = MADE[name]()
    result = demo.run(graph, 3, max_block_warps=4, max_warp_nzs=8)
    assert f"{graph.nnz:,} nonzeros" in demo.table(result)
    demo.draw(result, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text().rstrip().endswith("</svg>")


def test_the_demo_s_schemes_are_those_of_the_graph_and_of_the_records():
    result = demo.run(accelviz.load_graph("cora"), 64)
    waiting, times = result.schemes["waiting"] / 100, result.schemes["microseconds"]
    records = accelviz.measure.records.recorded("bundled-h200").query("state == 'warm'")
    case = "graph == 'cora' and strategy == 'graphblast' and columns == 64"
    assert times["a warp a row"] == records.query(case)["median_us"].round(1).item()
    known = {
        "a warp a row": accelviz.plan("cora", "graphblast").statistics.idle_share,
        "warp-level partition": result.warp_level.statistics.idle_share,
        "Accel-GCN": result.plan.statistics.idle_share,
    }
    assert waiting[[*known]].to_dict() == pytest.approx(known, abs=5e-4)
    assert np.isnan(waiting["cuSPARSE"])
    timed_on = demo.times_origin(result)
    overview = plots.overview(result.plan, result.warp_level, result.schemes, timed_on=timed_on)
    assert cut_off(overview) == []
    assert "no GPU's times" in demo.times_origin(demo.run(MADE["wide"](), 3))


def test_the_demo_takes_a_file_and_a_setting(tmp_path, capsys):
    sparse.save_npz(tmp_path / "mine.npz", sparse.random_array((90, 90), density=0.2, rng=0))
    options = ["--graph", str(tmp_path / "mine.npz"), "--columns", "5", "--max-block-warps", "3"]
    assert cli.main(["demo", *options, "--output", str(tmp_path / "p.pdf")]) == 0
    printed = capsys.readouterr().out
    assert "mine: 90 rows, 1,620 nonzeros" in printed
    assert "of 3 warps" in printed
    assert (tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph", "none"], "there is no graph 'none'"),
        (["--columns", "0"], "n_cols: got 0"),
        (["--max-warp-nzs", "70000"], "max_warp_nzs: got 70000"),
        (["--output", "x.doc"], "a name ending in .png, .svg, .pdf"),
        (["--output", "nowhere/x.png"], "no folder nowhere"),
    ],
)
def test_the_demo_names_what_is_wrong_and_leaves_nothing(
    options, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit")  # PyTorch Geometric, when imported
def test_doctor_compiles_the_common_kernels(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path))
    names = ("row_thread", "graphblast")
    kernels = [accelviz.plan("cora", name).kernel for name in (*names, *names)]
    monkeypatch.setattr("accelviz.devices.usual.usual_kernels", lambda: iter(kernels))
    try:
        compile_cubin(kernels[0], "sm_80")
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compiled here: {error}")
    counts = []
    for _ in range(2):
        assert cli.main(["doctor", "--warm", "--arch", "sm_80"]) == 0
        printed = capsys.readouterr().out
        assert f"kernels for sm_80 into {tmp_path}" in printed
        counts += re.findall(r"^(\d+) of (\d+) kernels compiled in [\d.]+ s$", printed, re.M)
    on_tensors = ()
    if importlib.util.find_spec("torch_geometric"):
        on_tensors = importlib.import_module("accelviz.torch.device").tensor_kernels(kernels)
    number = str(2 + len({spec.configured_source() for spec in on_tensors}))
    assert counts == [(number, number), ("0", number)]
    assert len([*tmp_path.rglob("*.cubin")]) == int(number)
    assert cli.main(["doctor", "--warm", "--arch", "90"]) == 2
    assert "--arch: got '90'" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_is_installed():
    doctor = [sys.executable, "-m", "accelviz", "doctor"]
    answer = subprocess.run(doctor, capture_output=True, text=True, check=True)
    assert re.search(r"^gpu +(ready|no (package|driver|toolkit)): ", answer.stdout, re.M)
    assert re.search(r"^kernels +\d+ CUDA sources in /", answer.stdout, re.M)
    assert max(map(len, answer.stdout.splitlines())) < 400
    script = Path(sys.executable).with_name("accelviz")
    if script.exists():
        answer = subprocess.run([str(script), "-h"], capture_output=True, text=True, check=True)
        assert answer.stdout.startswith("usage: accelviz ")
        assert "doctor" in answer.stdout


def fake_cupy(count=1, nvrtc=(13, 0), driver_error=None, nvrtc_error=None):
    """Return a simulated CuPy with the attributes that `diagnose` uses."""

    def answer(value, error):
        def call(*_):
            if error:
                raise error
            return value

        return call

    properties = {"name": b"NVIDIA H100", "major": 9, "minor": 0, "totalGlobalMem": 80 * 2**30}
    return types.SimpleNamespace(
        __version__="14.0",
        cuda=types.SimpleNamespace(
            runtime=types.SimpleNamespace(
                getDeviceCount=answer(count, driver_error),
                getDeviceProperties=answer(properties, None),
                runtimeGetVersion=lambda: 13000,
            ),
            nvrtc=types.SimpleNamespace(getVersion=answer(nvrtc, nvrtc_error)),
            Device=lambda: types.SimpleNamespace(id=0),
        ),
    )


@pytest.mark.parametrize(
    ("cupy", "driver", "state", "message", "fix"),
    [
        (ModuleNotFoundError("cupy"), None, cuda.NO_PACKAGE, "not installed", "nothing to do"),
        (ModuleNotFoundError("cupy"), "13.0", cuda.NO_PACKAGE, "CUDA 13.0", "make install CUDA=13"),
        (ModuleNotFoundError("cupy"), "12.4", cuda.NO_PACKAGE, "CUDA 12.4", "accelviz[cuda12]"),
        (
            ImportError("libfoo.so"),
            "13.0",
            cuda.NO_PACKAGE,
            "does not import: libfoo.so",
            "CUDA=13",
        ),
        (
            fake_cupy(driver_error=RuntimeError("cudaErrorInsufficientDriver")),
            None,
            cuda.NO_DRIVER,
            "cudaErrorInsufficientDriver",
            "install its driver",
        ),
        (
            fake_cupy(driver_error=RuntimeError("insufficient")),
            "12.4",
            cuda.NO_DRIVER,
            "supports CUDA 12.4 only",
            "make install CUDA=12",
        ),
        (
            fake_cupy(driver_error=RuntimeError("cudaErrorNoDevice")),
            "13.0",
            cuda.NO_DRIVER,
            "cudaErrorNoDevice",
            "nvidia-smi",
        ),
        (fake_cupy(count=0), "13.0", cuda.NO_DRIVER, "lists no GPU", "nvidia-smi"),
        (
            fake_cupy(nvrtc_error=RuntimeError("libnvrtc.so.13 is missing")),
            "13.0",
            cuda.NO_TOOLKIT,
            "libnvrtc.so.13 is missing",
            "pip install 'cupy-cuda13x[ctk]'",
        ),
        (fake_cupy(), "13.0", cuda.READY, "NVIDIA H100, compute capability 9.0, 80 GiB", ""),
    ],
)
def test_the_doctor_knows_four_states(cupy, driver, state, message, fix, monkeypatch):
    monkeypatch.setattr(cuda.sys, "platform", "linux")

    def import_cupy():
        if isinstance(cupy, Exception):
            raise cupy
        return cupy

    state_of_gpu = cuda.diagnose(import_cupy, lambda: driver)
    assert state_of_gpu.state == state
    assert message in state_of_gpu.detail
    assert fix in state_of_gpu.fix
    assert bool(state_of_gpu.fix) != state_of_gpu.ready


def test_the_doctor_on_macos(monkeypatch):
    monkeypatch.setattr(cuda.sys, "platform", "darwin")

    def import_cupy():
        raise ModuleNotFoundError("cupy")

    state_of_gpu = cuda.diagnose(import_cupy, lambda: None)
    assert (state_of_gpu.state, state_of_gpu.fix) == (cuda.NO_PACKAGE, "use device='cpu' here")


def test_the_driver_s_version_is_read_from_nvidia_smi(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cuda.driver_cuda_version() is None
    for script, version in (
        ("echo '| Driver Version: 580.1   CUDA Version: 13.0     |'", "13.0"),
        ("echo nothing", None),
        ("exit 9", None),
    ):
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        assert cuda.driver_cuda_version() == version


def test_the_gpu_is_looked_for_once():
    assert gpu_state() is gpu_state()


def test_degree_bounds_name_what_the_partition_does():
    plan = accelviz.plan("cora", "accel_gcn")
    assert list(_degree_bounds(plan)) == [32, 384, 2**31 - 1]
    alone = _degree_bounds(accelviz.plan("cora", "accel_gcn", max_block_warps=1))
    assert list(alone.values()) == ["one combined warp\na row", "split over\nblocks"]
    narrow = _degree_bounds(accelviz.plan("cora", "accel_gcn", 32))
    assert list(narrow.values())[:2] == ["one warp\na row", "warps\nshare a row"]


def test_the_examples_are_titled_with_their_int4():
    chosen = _example_blocks(accelviz.plan("cora", "accel_gcn"))
    assert next(iter(chosen)) == "block 0\n(1, 0,\n0, 1|12)"
    split = _example_blocks(accelviz.plan(MADE["hub"](), "accel_gcn"))
    assert list(split)[-1].endswith("384)")


def test_example_blocks_of_nothing_and_of_equals():
    from accelviz.analysis.balance import example_blocks

    assert example_blocks(np.array([]), np.array([]), 5) == []
    assert example_blocks(np.array([3, 3, 3]), np.array([1, 12, 2]), 5) == [1]


def test_lab_copies_the_lessons_and_overwrites_nothing(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "mine"
    assert cli.main(["lab", str(folder), "--copy-only"]) == 0
    lesson = folder / "01-from-graph-to-blocks.ipynb"
    assert lesson.read_bytes() == (NOTEBOOKS / lesson.name).read_bytes()
    assert "New files in" in capsys.readouterr().out
    lesson.write_text("my work")
    (folder / "graphs.ipynb").unlink()
    assert cli.main(["lab", str(folder), "--copy-only"]) == 0
    assert lesson.read_text() == "my work"
    assert capsys.readouterr().out.startswith(f"New files in {folder}: 1.")
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda _: None)
    assert cli.main(["lab", str(folder)]) == 2
    assert "pip install 'accelviz[lab]'" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert cli.main(["lab", str(tmp_path / "file")]) == 2


def test_lab_opens_jupyterlab_on_the_folder(tmp_path, monkeypatch):
    pytest.importorskip("jupyterlab")
    asked = []
    monkeypatch.setattr(cli.os, "execv", lambda _, command: asked.append(command) or sys.exit())
    with pytest.raises(SystemExit):
        cli.main(["lab", str(tmp_path)])
    first = "--LabApp.default_url=/lab/tree/01-from-graph-to-blocks.ipynb"
    assert asked == [[sys.executable, "-m", "jupyterlab", f"--notebook-dir={tmp_path}", first]]
