"""A cell that hangs, crashes or eats all memory costs itself only."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import socket
import sys
import textwrap

import pytest

pytest.importorskip("nbclient", reason="running submissions needs nbclient")
nbformat = pytest.importorskip("nbformat", reason="running submissions needs nbformat")
psutil = pytest.importorskip("psutil")
pytest.importorskip("ipykernel", reason="running submissions needs ipykernel")
if sys.platform == "win32":
    pytest.skip("there is no sandbox on Windows", allow_module_level=True)

from accelviz.course.autograde.outputs import settle
from accelviz.course.autograde.sandbox import Limits, Run, copy_files, held
from tests.course import tiny

# Nothing here imports more than the standard library, so what is slow is meant to be.
LIMITS = Limits(cell_seconds=4, seconds=90, memory_gib=1.0)


def own(source):
    return nbformat.v4.new_code_cell(textwrap.dedent(source))


def graded(source):
    cell = own(source)
    return tiny.marked(cell, f"test-{cell['id']}", grade=True, locked=True, points=2)


def run(*cells, limits=LIMITS, folder=None):
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    done = Run(notebook, limits, folder).run()
    assert [each.index for each in done] == list(range(len(cells)))
    return [each.problem for each in done], notebook


def test_a_crash_costs_its_own_cell_and_what_was_before_is_there_again():
    problems, _ = run(
        own("import os\nx = 1\ndef crash(): os.abort()"),
        graded("assert x == 1; x = 7"),
        own("x += 1"),
        graded("crash()"),
        graded("assert x == 2"),  # a test's own doings are not repeated
        own("os.kill(os.getpid(), 9)"),
        own("y = x"),
        graded("assert y == 2"),
        own("exit()"),
        graded("assert y == 2"),
    )
    died = "the kernel died (a crash, or out of memory)"
    ended = "the cell ended its own kernel (exit or quit)"
    assert problems == ["", "", "", died, "", died, "", "", ended, ""]


def test_an_endless_loop_is_stopped_and_one_that_ignores_it_is_ended():
    problems, notebook = run(
        own("import signal, time\ndef wait():\n    while True: time.sleep(0.01)"),
        graded("wait()"),
        own("z = 3\nwait()"),
        graded("assert z == 3"),
        own("signal.signal(signal.SIGINT, signal.SIG_IGN)\nw = 5\nwhile True: pass"),
        graded("assert z == 3 and 'w' not in globals()"),
        limits=Limits(cell_seconds=2, seconds=90, memory_gib=1.0),
    )
    stopped = "stopped after 2 s"
    stubborn = "stopped after 2 s, and would not be interrupted"
    assert problems == ["", stopped, stopped, "", stubborn, ""]
    assert [output.output_type for output in notebook.cells[1].outputs][-1] == "error"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a limit of address space")
@pytest.mark.parametrize("gpu", [False, True])
def test_a_memory_bomb_costs_its_own_cell(gpu):
    problems, _ = run(
        own("x = 1\ndef bomb():\n    hoard = []\n    while True: hoard.append(bytes(2**26))"),
        graded("bomb()"),
        # the bomb's memory is free again
        graded("half = bytes(2**28)"),
        own("all_of_it = bytearray(2**40)"),
        graded("assert x == 1"),
        limits=Limits(cell_seconds=10, seconds=90, memory_gib=1.0, gpu=gpu),
    )
    assert problems == ["", "out of memory", "", "out of memory", ""]


def test_a_submission_s_time_is_shared_by_its_cells():
    limits = Limits(cell_seconds=30, seconds=2)
    problems, notebook = run(own("import time"), own("time.sleep(60)"), graded("1"), limits=limits)
    assert problems[1].startswith("stopped after 2 s")
    assert problems[2] == "not run: the submission had used its 2 s"
    assert notebook.cells[2].outputs[0].ename == "NotRun"


def test_what_a_cell_prints_is_limited_and_its_value_is_not_lost():
    limits = Limits(cell_seconds=20, output_bytes=10_000)
    source = "for i in range(3000): print('x' * 100, flush=i % 100 == 0)\n0.5"
    problems, notebook = run(graded(source), limits=limits)
    assert problems == [""]
    shown = notebook.cells[0].outputs
    assert len(nbformat.writes(notebook)) < 30_000
    assert "more than 10,000 bytes; the rest is dropped" in str(shown)
    assert shown[-1].data["text/plain"] == "0.5"


def test_exceptions_of_any_length_and_name_are_told():
    problems, notebook = run(
        own("class Odd(Exception): pass\nOdd.__name__ = ''"),
        graded("raise Odd()"),
        graded("raise ValueError('x' * 10**7)"),
        graded("def f(n): return f(n + 1)\nf(0)"),
    )
    assert problems[:2] == ["", "an error of no name"]
    assert problems[2] == "ValueError: " + "x" * 188
    assert problems[3].startswith("RecursionError: maximum recursion depth")
    assert len(nbformat.writes(notebook)) < 100_000


def test_the_network_is_cut_where_it_can_be():
    limits = Limits(cell_seconds=10)
    if not held(limits)["network"]:
        pytest.skip("this system lets nobody make a network of their own")
    source = "import socket; socket.create_connection(('127.0.0.1', {}), timeout=5).close()"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        problems, _ = run(graded(source.format(port)), limits=limits)
        assert problems[0].startswith("OSError: [Errno 101]")
        problems, _ = run(graded(source.format(port)), limits=Limits(cell_seconds=10, network=True))
        assert problems == [""]


def test_cells_run_in_a_copy_of_their_folder_and_leave_nothing(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.txt").write_text("7")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "other.ipynb").write_text("no")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("/etc")
    before = sorted(tmp_path.rglob("*"))
    problems, _ = run(
        own("from pathlib import Path\nhere = [str(p) for p in sorted(Path().rglob('*'))]"),
        graded("assert here == ['sub', 'sub/data.txt'], here"),
        own("Path('sub/data.txt').write_text('8'); Path('new').write_text('9')"),
        graded("assert Path('new').read_text() == '9'"),
        own("import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == ''"),
        folder=tmp_path,
    )
    assert set(problems) == {""}
    assert (tmp_path / "sub" / "data.txt").read_text() == "7"
    assert sorted(tmp_path.rglob("*")) == before


def test_large_files_are_refused():
    problems, _ = run(
        graded("open('big', 'wb').write(bytes(3 * 2**20))"),
        limits=Limits(cell_seconds=10, file_mib=1),
    )
    assert problems[0].startswith(("OSError", "the kernel died"))


def test_a_child_of_the_submission_does_not_outlive_it():
    source = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
        print(child.pid)
        """
    _, notebook = run(own(source))
    pid = int(notebook.cells[0].outputs[0].text)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0.0", ""),
        ("2", ""),
        ("1.25", ""),
        ("2.5", "the test ended in '2.5', which is not a number from 0 to 2"),
        ("-1.0", "the test ended in '-1.0', which is not a number from 0 to 2"),
        ("nan", "the test ended in 'nan', which is not a number from 0 to 2"),
        ("True", "the test ended in 'True', which is not a number from 0 to 2"),
        (
            "np.float64(1.0)",
            "the test ended in 'np.float64(1.0)', which is not a number from 0 to 2",
        ),
    ],
)
def test_what_nbgrader_would_take_for_full_points_is_an_error(value, problem):
    cell = graded("anything")
    first, last = ({"text/plain": text} for text in ("99", value))
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        nbformat.v4.new_output("execute_result", first),
        nbformat.v4.new_output("execute_result", last),
    ]
    assert settle(cell) == problem
    kinds = [output.output_type for output in cell.outputs]
    assert kinds == ["stream", "execute_result", *(["error"] if problem else [])]
    assert cell.outputs[0].name == "stdout"
    assert cell.outputs[1].data["text/plain"] == value


def test_a_kernel_that_cannot_start_is_an_error_with_a_remedy():
    from accelviz.errors import DeviceUnavailable

    with pytest.raises(DeviceUnavailable, match="allow more memory"):
        run(own("1"), limits=Limits(memory_gib=0.02))


def test_copy_files_of_nothing(tmp_path):
    (tmp_path / "to").mkdir()
    copy_files(tmp_path / "from", tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []
