"""The sandbox: a cell that hangs, crashes or exhausts memory fails alone; confinement holds."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="running submissions needs nbformat")
psutil = pytest.importorskip("psutil")
pytest.importorskip("IPython", reason="running submissions needs IPython")
if sys.platform == "win32":
    pytest.skip("there is no sandbox on Windows", allow_module_level=True)

from accelviz.course.autograde import border, child, sandbox
from accelviz.course.autograde.border import Confinement, Limits, summary
from accelviz.course.autograde.child import GREEDY, Child
from accelviz.course.autograde.files import MAX_FILES, copy_files
from accelviz.course.autograde.outputs import show_points, trim_outputs
from accelviz.course.autograde.processes import call_in_process
from accelviz.course.autograde.stand_ins import ANSWERS, HARMLESS
from tests.course import tiny
from tests.course.wrong import needs_bubblewrap

pytestmark = pytest.mark.xdist_group("grader")

# Short limits are enough: the cells import little more than the standard library.
LIMITS = Limits(cell_seconds=4, seconds=90, memory_gib=1.0)


def student_cell(source):
    return nbformat.v4.new_code_cell(textwrap.dedent(source))


def graded(source):
    cell = student_cell(source)
    return tiny.marked(cell, f"test-{cell['id']}", grade=True, locked=True, points=2)


def run(*cells, limits=LIMITS, folder=None):
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    done = sandbox.run(notebook, limits, folder)
    assert [item.index for item in done] == list(range(len(cells)))
    return [item.problem for item in done], notebook


@pytest.mark.long
def test_a_crash_fails_one_cell_and_earlier_cells_run_again():
    problems, _ = run(
        student_cell("import os\nx = 1\ndef crash(): os.abort()"),
        graded("assert x == 1; x = 7"),  # a test does not change the student's variables
        student_cell("x += 1"),
        graded("crash()"),
        graded("assert x == 2"),
        student_cell("import ctypes\nctypes.string_at(0)"),
        student_cell("y = x"),
        graded("assert y == 2"),
        student_cell("exit()"),
        graded("assert y == 2"),
    )
    died = "the submission's process died (a crash, or out of memory)"
    ended = "the cell ended its own process (exit or quit)"
    assert problems == ["", "", "", died, "", died, "", "", ended, ""]


@pytest.mark.parametrize("marks", [{"grade": True, "points": 2}, {}])
def test_a_student_s_locked_cell_runs_in_the_student_s_process(marks):
    claims = student_cell("import os\ndef parent(): return os.getppid()")
    del tiny.marked(claims, "claims", locked=True, **marks).metadata["nbgrader"]["grade_id"]
    problems, _ = run(claims, graded("import os\nassert parent() != os.getppid()"))
    assert problems == ["", ""]


@pytest.mark.long
def test_an_endless_loop_is_interrupted_or_its_process_is_killed():
    problems, notebook = run(
        student_cell("import signal, time\ndef wait():\n    while True: time.sleep(0.01)"),
        graded("wait()"),
        student_cell("z = 3\nwait()"),
        graded("assert z == 3"),
        student_cell(
            "signal.signal(signal.SIGALRM, signal.SIG_IGN)\nw = 5\nwhile True: time.sleep(0.01)"
        ),
        graded("assert z == 3\nw"),
    )
    # after a cell that was stopped, the later ones have a quarter of the time
    killed = "stopped after 1 s, and would not be interrupted"
    unknown = "NameError: name 'w' is not defined"
    assert problems == ["", "stopped after 4 s", "stopped after 1 s", "", killed, unknown]
    assert [output.output_type for output in notebook.cells[1].outputs][-1] == "error"


def test_a_test_is_stopped_where_a_library_catches_the_first_exception():
    """pandas does, on the way to a table of a million columns that a submission has sent."""
    test = """
        try:
            while True: pass
        except BaseException: pass
        while True: pass
        """
    limits = Limits(cell_seconds=1, seconds=30)
    assert run(graded(textwrap.dedent(test)), limits=limits)[0] == ["stopped after 1 s"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a limit of address space")
def test_exhausted_memory_fails_one_cell():
    problems, _ = run(
        student_cell(
            "x = 1\ndef bomb():\n    hoard = []\n    while True: hoard.append(bytes(2**26))"
        ),
        graded("bomb()"),
        student_cell("half = bytes(2**28)"),  # the bomb's memory is free again
        student_cell("all_of_it = bytearray(2**40)"),
        graded("assert x == 1"),
        limits=Limits(cell_seconds=10, seconds=90, memory_gib=1.0),
    )
    assert problems == ["", "out of memory", "", "out of memory", ""]


def test_the_cells_of_a_submission_share_its_time_limit():
    limits = Limits(cell_seconds=30, seconds=3)
    problems, notebook = run(
        student_cell("import time"), student_cell("time.sleep(60)"), graded("1"), limits=limits
    )
    assert problems[1].startswith("stopped after ")
    assert problems[2] == "not run: the submission had used its 3 s"
    assert notebook.cells[2].outputs[0].ename == "NotRun"


def test_the_output_of_a_notebook_is_limited_too():
    limits = Limits(cell_seconds=20, output_bytes=10_000)
    source = "print('x' * 9_000)\nraise ValueError('y' * 4_000)"
    wordy = [student_cell(source) for _ in range(12)]
    problems, notebook = run(*wordy, graded("0.5"), limits=limits)
    assert all("ValueError" in problem for problem in problems[:12])
    assert 80_000 < len(nbformat.writes(notebook)) < 200_000
    assert [len(cell.outputs) for cell in notebook.cells[10:]] == [1, 1, 1]
    assert notebook.cells[11].outputs[0].evalue.startswith("yyy")
    source = "for _ in range(120): display({'text/plain': ''}, raw=True)"
    _, notebook = run(student_cell(source), student_cell(source), graded("0.5"), limits=limits)
    assert [len(cell.outputs) for cell in notebook.cells] == [120, 0, 1]


def test_output_is_limited_and_the_value_is_kept():
    limits = Limits(cell_seconds=20, output_bytes=10_000)
    source = "for i in range(3000): print('x' * 100, flush=i % 100 == 0)\n0.5"
    problems, notebook = run(student_cell(source), graded("print('x' * 10**6)\n0.5"), limits=limits)
    assert problems == ["", ""]
    outputs = notebook.cells[0].outputs
    assert len(nbformat.writes(notebook)) < 30_000
    assert "more than 10,000 bytes; the rest is dropped" in str(outputs)
    (points,) = notebook.cells[1].outputs
    assert points.data["text/plain"] == "0.5"


def test_what_a_cell_shows_is_kept_and_can_be_used_again():
    problems, notebook = run(
        student_cell("print('a'); display({'text/plain': 'b'}, raw=True); 6 * 7"),
        student_cell("x = _ + Out[1]"),
        graded("assert x == 84"),
    )
    assert problems == ["", "", ""]
    text, *displays = notebook.cells[0].outputs
    assert text.text == "a\n"
    assert [output.data["text/plain"] for output in displays] == ["b", "42"]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("HTML('<table><tr><td>7</td></tr>\\n<tr><td>8')", "7 \n   8"),
        ("Latex('$x^2$')", "$x^2$"),
        ("Markdown('**so**')", "**so**"),
        ("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", "<IPython.core.display.SVG object>"),
    ],
)
def test_the_text_of_what_is_displayed_is_shown(expression, text):
    _, notebook = run(student_cell(f"from IPython.display import *\ndisplay({expression})"))
    (output,) = notebook.cells[0].outputs
    assert output.data["text/plain"].strip() == text


@pytest.mark.parametrize(
    "setting",
    [
        "%config InlineBackend.figure_format = 'svg'",
        "%matplotlib inline\nset_matplotlib_formats('svg', 'pdf')",
    ],
)
def test_pictures_are_shown_also_of_a_notebook_that_asks_for_svg(setting):
    first = "from matplotlib_inline.backend_inline import set_matplotlib_formats\n"
    drawing = "\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    problems, notebook = run(student_cell(first + setting + drawing))
    assert problems == [""]
    assert "image/png" in notebook.cells[0].outputs[-1].data


def test_a_styled_table_is_shown_as_text():
    _, notebook = run(
        student_cell("import pandas as pd\npd.DataFrame({'a': [0.5]}).style.format(precision=2)")
    )
    assert notebook.cells[0].outputs[-1].data["text/plain"].split() == ["a", "0", "0.50"]


def test_exceptions_of_any_length_and_name_are_reported():
    problems, notebook = run(
        student_cell("class Odd(Exception): pass\nOdd.__name__ = ''\ndef odd(): raise Odd()"),
        graded("odd()"),
        student_cell("raise ValueError('x' * 10**7)"),
        student_cell("def f(n): return f(n + 1)\nf(0)"),
    )
    assert problems[:2] == ["", "StudentError"]
    assert problems[2] == "ValueError: " + "x" * 488
    assert problems[3].startswith("RecursionError: maximum recursion depth")
    assert len(nbformat.writes(notebook)) < 100_000


@needs_bubblewrap
def test_the_network_is_not_reachable():
    source = "import socket; socket.create_connection(('127.0.0.1', {}), timeout=5)"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        problems, _ = run(student_cell(source.format(listening.getsockname()[1])))
    assert problems[0].startswith(("ConnectionRefusedError", "PermissionError"))


def test_cells_run_in_a_copy_of_their_folder_and_leave_nothing(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.txt").write_text("7")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "other.ipynb").write_text("no")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "json.py").write_text("raise SystemExit")
    before = sorted(tmp_path.rglob("*"))
    problems, _ = run(
        student_cell(
            "from pathlib import Path\nhere = [str(p) for p in sorted(Path().rglob('*'))]"
        ),
        graded("assert here == ['json.py', 'sub', 'sub/data.txt'], here"),
        student_cell("Path('sub/data.txt').write_text('8'); Path('new').write_text('9')"),
        student_cell("assert Path('new').read_text() == '9'"),
        graded("import json, pathlib\nassert not pathlib.Path('new').exists()"),
        student_cell("import os, json\nassert os.environ['CUDA_VISIBLE_DEVICES'] == ''"),
        folder=tmp_path,
    )
    assert set(problems) == {""}
    assert (tmp_path / "sub" / "data.txt").read_text() == "7"
    assert sorted(tmp_path.rglob("*")) == before


@needs_bubblewrap
def test_no_repository_is_readable():
    source = """
        import accelviz.files as files, pathlib
        home = pathlib.Path(files.__file__).parent
        found = [p for p in home.parents if (p / ".git").exists() or (p / "tests").exists()]
        assert not found, found
        assert list(files.kernel_directory().iterdir()) and files.results_directory().is_dir()
        assert not list(files.assignments_directory().iterdir())
        """
    assert run(student_cell(source))[0] == [""]


#: Prints the names of files of kernels and reference strategies that are not empty.
LOOK = f"""
    import pathlib, accelviz.files
    files = list(accelviz.files.kernel_directory().rglob("*.cu*"))
    for name in {ANSWERS}:
        path = pathlib.Path(accelviz.__file__).parents[1] / name.replace(".", "/")
        files += [path.with_suffix(".py"), *path.rglob("*")]
        files += path.parent.glob(f"__pycache__/{{path.name}}.*")
    full = [file for file in files if file.is_file() and file.read_bytes()]
    print(*{{file.name.split(".")[0] for file in full}} - {{"__init__", *{HARMLESS}}})
    """


@pytest.mark.long
@needs_bubblewrap
@pytest.mark.parametrize("check", ["checks.blocks", "checks.schemes", "none"])
def test_the_files_of_reference_strategies_cannot_be_read(check):
    """They are empty for submissions of A2 and A3; those of other assignments may read them."""
    problems, notebook = run(student_cell(LOOK), graded(f"0.0  # {check}"))
    assert problems == ["", ""]
    names = set("".join(output.text for output in notebook.cells[0].outputs).split())
    if check == "none":
        assert {"block_level", "accel_gcn", "cusparse", "common"} <= names
    else:
        assert not names


def test_hidden_modules_of_reference_strategies_exist():
    for name in ANSWERS:
        path = border.PACKAGE.parent / name.replace(".", "/")
        module = path / "__init__.py" if name.endswith(".") else path.with_suffix(".py")
        assert module.is_file(), f"{name} has moved, so nothing hides it"


def test_large_files_are_refused():
    source = "open('big', 'wb').write(bytes(3 * 2**20))"
    problems, _ = run(student_cell(source), limits=Limits(cell_seconds=10, file_mib=2))
    assert problems[0].startswith(("OSError", "the submission's process died"))


@needs_bubblewrap
def test_a_crash_is_not_handed_to_a_program_of_the_system():
    """Such as systemd's or Ubuntu's, which gets it at a limit of 0 bytes, not at 1."""
    source = "import resource; assert resource.getrlimit(resource.RLIMIT_CORE) == (1, 1)"
    assert run(student_cell(source))[0] == [""]


@needs_bubblewrap
def test_many_files_are_refused():
    source = "for k in range(40): open(f'{k}', 'wb').write(bytes(2**20))"
    problems, _ = run(student_cell(source), limits=Limits(cell_seconds=10, disk_mib=16))
    assert problems[0].startswith("OSError: [Errno 28]")


@needs_bubblewrap
def test_a_submission_s_child_processes_are_killed():
    name = "left-behind-by-a-test"
    source = f"""
        import subprocess, sys
        command = [sys.executable, "-c", "import time; time.sleep(600)", {name!r}]
        child = subprocess.Popen(command, start_new_session=True)
        """
    assert run(student_cell(source))[0] == [""]
    for _ in range(50):  # killed processes disappear with a delay
        left = [item for item in psutil.process_iter(["cmdline"]) if name in str(item.info)]
        if not left:
            return
        time.sleep(0.1)
    pytest.fail(f"{left} is still there")


def test_a_submission_with_too_many_processes_is_killed():
    crowd = """
        import os, time
        for _ in range(200):
            if os.fork() == 0:
                time.sleep(600)
        time.sleep(600)
        """
    problems, _ = run(student_cell(crowd), student_cell("x = 1"), limits=Limits(cell_seconds=20))
    assert problems == [GREEDY, ""]


def test_ctrl_c_shows_no_traceback_of_the_server_and_its_processes():
    code = """
        import multiprocessing.forkserver, os, signal
        from accelviz.course.autograde import processes
        processes._context()
        server = multiprocessing.forkserver._forkserver
        begun = server._forkserver_pid
        os.kill(begun, signal.SIGINT)
        print(processes.call_in_process(abs, -7, seconds=120), server._forkserver_pid == begun)
        receiving, sending = processes._context().Pipe(duplex=False)
        receiving.close()  # as where the caller was interrupted
        child = processes._context().Process(target=processes._call, args=(sending, abs, (-7,)))
        child.start()
        child.join()
        """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == ("7 True\n", "")


def test_a_call_in_a_process_has_a_time_limit():
    with pytest.raises(TimeoutError, match="longer than 0.2 s"):
        call_in_process(time.sleep, 60, seconds=0.2)
    assert call_in_process(max, 1, 2, seconds=60) == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, ""),
        (0.0, ""),
        (2, ""),
        (1.25, ""),
        (2.5, "the test ended in '2.5', which is not a number from 0 to 2"),
        (-1.0, "the test ended in '-1.0', which is not a number from 0 to 2"),
        (float("nan"), "the test ended in 'nan', which is not a number from 0 to 2"),
        (True, "the test ended in 'True', which is not a number from 0 to 2"),
        ("2.0", "the test ended in '2.0', which is not a number from 0 to 2"),
    ],
)
def test_invalid_points_are_an_error(value, problem):
    cell = graded("anything")
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "99"})]
    assert show_points(cell, value) == problem
    kinds = [output.output_type for output in cell.outputs]
    assert kinds == (["error"] if problem else ["execute_result"] * (value is not None))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"outputs": 3},
        {"outputs": [None, {"output_type": "stream", "text": {}}, {"output_type": "error"}]},
        {"outputs": [{"output_type": "display_data", "data": {"a/b": [], "x/json": {}}}]},
        {"outputs": [{"output_type": "stream", "text": "\ud800" * 10**6}]},
    ],
)
def test_malformed_outputs_become_valid(answer):
    outputs = [nbformat.from_dict(item) for item in trim_outputs(answer, 1_000)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=outputs)])
    nbformat.validate(notebook)
    assert len(nbformat.writes(notebook).encode("utf-8")) < 5_000


def test_colors_and_turns_of_direction_are_left_out():
    """A page takes quadratic time for colors; other text than was printed is read in turned one."""
    answer = {
        "outputs": [{"output_type": "stream", "text": "\x1b[1;31ma\x1b[0mb\x1b[\u202e\x1bc" * 9}]
    }
    (output,) = trim_outputs(answer, 1_000)
    assert output["text"] == "abc" * 9


def test_only_text_and_pictures_are_kept():
    data = {"text/html": "<script>1</script>", "image/svg+xml": "<svg onload='1'/>"}
    data |= {"application/javascript": "1", "text/markdown": "<b>", "text/plain": "x"}
    (outputs,) = trim_outputs({"outputs": [{"output_type": "display_data", "data": data}]}, 1_000)
    assert outputs["data"] == {"text/plain": "<b>"}  # as it was written


_FLOOD = """
import os, struct
for number in range(3, 40):
    try: os.write(number, struct.pack("!i", 120 << 20))
    except OSError: pass
"""


def test_the_length_of_a_reply_is_limited():
    problems, _ = run(student_cell(_FLOOD), student_cell("x = 1"), graded("assert x == 1"))
    assert problems == ["an answer is larger than 8 MiB", "", ""]


#: Statements that would leave the sandbox, or a trace that another one could see.
BREAKOUTS = """
open("/proc/sys/kernel/core_pattern", "w")
open("/proc/sysrq-trigger", "w")
os.listdir("/proc/sys")[0]
open("/etc/shadow")
open("/etc/passwd")
os.setuid(0)
fcntl.flock(open(os.__file__), fcntl.LOCK_SH)
fcntl.lockf(open(os.__file__), fcntl.LOCK_SH | fcntl.LOCK_NB)
fcntl.fcntl(open(os.__file__), fcntl.F_OFD_SETLK, bytes(32))
checked(libc.syscall(fcntl_number, os.open("/usr", 0), ctypes.c_long(1 << 32 | 1026), 1))
fcntl.fcntl(os.open("/usr", os.O_RDONLY), fcntl.F_NOTIFY, 1)
fcntl.fcntl(os.open("mine", os.O_CREAT), 1036, struct.pack("q", 3))
forbidden(lambda: fcntl.ioctl(os.open(os.__file__, 0), 0x6612))
checked(libc.inotify_init1(0))
os.memfd_create("hoard")
forbidden(lambda: checked(libc.syscall(444, 0, 0, 1)))
mmap.mmap(os.open(os.__file__, os.O_RDONLY), 0, prot=mmap.PROT_READ).madvise(20)
mmap.mmap(os.open(os.__file__, os.O_RDONLY), 0, prot=mmap.PROT_READ).madvise(21)
checked(libc.shmget(0, 1 << 20, 0o1600))
checked(libc.unshare(0x10000000))
checked(libc.setns(os.open("/proc/self/ns/pid", os.O_RDONLY), 0))
checked(libc.syscall(56, 0x10000011, 0, 0, 0, 0) if platform.machine() == "x86_64" else -1)
checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
checked(libc.ptrace(16, 1, 0, 0))
checked(libc.ptrace(0, 0, 0, 0))
checked(libc.process_vm_writev(os.getpid(), 0, 0, 0, 0, 0))
checked(libc.timer_create(0, 0, ctypes.create_string_buffer(8)))
checked(int(os.path.exists("/proc/1/mem")) - 1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
forbidden(lambda: mmap.mmap(-1, 2 << 20, flags=0x40022))
forbidden(lambda: socket.socketpair(16, 3))
os.open("/proc/1/root/etc/hostname", os.O_RDONLY)
os.kill(os.getppid() + 10**5, 9)
open(os.__file__, "a")
open("/usr/new", "w")
"""


@needs_bubblewrap
def test_every_way_out_of_the_sandbox_is_refused():
    begin = """
        import ctypes, fcntl, mmap, os, platform, signal, socket, struct
        libc = ctypes.CDLL(None, use_errno=True)
        fcntl_number = 72 if platform.machine() == "x86_64" else 25
        def checked(result):
            raise OSError(ctypes.get_errno(), "") if result < 0 else SystemError
        def forbidden(call):  # and no error for want of huge pages, or of a kind of sockets
            try: call()
            except OSError as error: checked(-isinstance(error, PermissionError))
        """
    lines = BREAKOUTS.strip().split("\n")
    problems, _ = run(student_cell(begin), *map(student_cell, lines))
    kinds = ("OSError", "PermissionError", "FileNotFoundError", "IndexError", "ProcessLookupError")
    results = zip(lines, problems[1:], strict=True)
    assert not [line for line, problem in results if not problem.startswith(kinds)]


def test_a_text_is_the_same_for_all_tests():
    source = """
        class Changing(str):
            count = 0
            def __str__(self):
                Changing.count += 1
                return f"text {Changing.count}"
        text = Changing("nothing")
        """
    problems, _ = run(
        student_cell(source),
        graded("assert text == 'text 1', text"),
        student_cell("text = 'another one'"),
        graded("assert text == 'text 1', text"),
    )
    assert problems == [""] * 4


def test_names_of_the_grader_are_not_in_the_submission():
    """Tests, seeds and points are nowhere in the memory and the environment of its process."""
    source = """
        import gc, os
        def seen():
            secret = "".join(["s", "ecret of the test"])
            texts = [item for item in gc.get_objects() if isinstance(item, (str, dict, list))]
            return secret in str(texts) + str(dict(os.environ)), "SEED" in str(dict(os.environ))
        """
    test = "hidden = 'secret of the test'\nassert seen() == (False, False), seen()"
    assert run(student_cell(source), graded(test))[0] == ["", ""]


@pytest.mark.long
@needs_bubblewrap
@pytest.mark.parametrize("begins", ["count()", "thread(count)"])
def test_processes_of_a_submission_do_not_work_at_the_same_time(begins):
    """A helper of the first process counts; it stands still while the second or the judge works.

    The first thread of a helper may have ended, which makes it look like a zombie.
    """
    source = f"""
        import ctypes, os, threading, time
        def count():
            for k in range(100_000):
                open("next", "w").write(str(k))
                os.replace("next", "count")
                time.sleep(0.001)
            os._exit(0)
        def thread(work):
            threading.Thread(target=work).start()
            ctypes.CDLL(None).pthread_exit(None)
        if os.fork() == 0: {begins}
        while not os.path.exists("count"): time.sleep(0.01)
        def counted(): return int(open("count").read())
        def sleep(): time.sleep(0.6)
        """
    test = """
        # needs the twin: checks.schemes
        import time
        from accelviz.course.checks.remote import link_of
        first = counted()
        time.sleep(0.6)
        twin = link_of(counted).to("twin")
        nap = twin.request({"do": "get", "name": "sleep"})
        nap()
        count = counted() - first
        assert count < 150, count
        """
    assert run(student_cell(source), graded(textwrap.dedent(test)))[0] == ["", ""]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a limit of address space")
def test_the_processes_of_a_submission_share_their_memory():
    source = """
        import os, time
        def hold():
            global block
            block = bytearray(b"x") * 300_000_000
            if not os.fork():
                block[::4096] = bytes(len(block[::4096]))
                time.sleep(100)
            time.sleep(2)
        """
    test = """
        # needs the twin: checks.schemes
        from accelviz.course.checks.remote import link_of
        hold()
        link_of(hold).to("twin").request({"do": "get", "name": "hold"})()
        """
    limits = Limits(cell_seconds=30, seconds=90, memory_gib=0.6)
    problems, _ = run(student_cell(source), graded("hold()"), limits=limits)
    assert problems == ["", ""]
    problems, _ = run(student_cell(source), graded(textwrap.dedent(test)), limits=limits)
    assert problems == ["", GREEDY]


def test_too_many_files_end_a_submission():
    source = """
        import time
        for k in range(25_000): open(f"{k}", "w").close()
        time.sleep(60)
        """
    problems, _ = run(student_cell(source), limits=Limits(cell_seconds=40))
    assert problems == [GREEDY]


@pytest.fixture
def sleeper(tmp_path, monkeypatch):
    """A submission's process that waits, and has not begun to set up its file system."""
    script = tmp_path / "bwrap"
    script.write_text(f'#!/bin/sh\nsleep 100 &\nwait $!\nexec {border.bubblewrap()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(border, "bubblewrap", lambda: str(script))
    for name in ("work", "home", "cache"):
        (tmp_path / "given" / name).mkdir(parents=True)
    started = Child(Confinement(LIMITS, tmp_path / "given", user=border.hand_over(tmp_path)))
    try:
        while len(psutil.Process(started._process.pid).children()) == 0:
            time.sleep(0.01)
        yield started
    finally:
        started.end()


@needs_bubblewrap
def test_files_of_the_machine_are_not_those_of_a_submission(sleeper):
    """On a loaded machine, processes are counted before bubblewrap has set up its file system."""
    assert sleeper._n_files_and_sockets(sleeper._processes())[0] == 0


@needs_bubblewrap
def test_processes_are_stopped_when_they_have_a_processor_again(sleeper, monkeypatch):
    suspend, calls = psutil.Process.suspend, []

    def late(process):
        calls.append(process)
        if len(calls) > 500:
            suspend(process)

    monkeypatch.setattr(psutil.Process, "suspend", late)
    sleeper._pause()
    assert len(calls) > 500
    states = {process.status() for process in sleeper._processes()}
    assert states == {psutil.STATUS_STOPPED}


@needs_bubblewrap
def test_processes_that_were_woken_while_others_were_looked_at_are_stopped(sleeper, monkeypatch):
    """The end of a process wakes another one whose timer, group or parent's signal says so."""
    status, woken = psutil.Process.status, []

    def waking(process):
        state = status(process)
        if state == psutil.STATUS_STOPPED and process != sleeper._root and not woken:
            woken.append(process)
            sleeper._root.resume()
        return state

    with monkeypatch.context() as patch:
        patch.setattr(psutil.Process, "status", waking)
        sleeper._pause()
    assert woken
    assert {process.status() for process in sleeper._processes()} == {psutil.STATUS_STOPPED}


@needs_bubblewrap
@pytest.mark.parametrize("trick", ["half", "deaf"])
def test_too_many_processes_are_seen_while_a_message_is_under_way(trick):
    """It stops in the middle of a reply, or does not read a message."""
    source = f"""
        import gc, os, time
        def hoard(*_):
            for _ in range(160):  # more than it may have, fewer than the system stops it at
                if os.fork() == 0: time.sleep(100)
            time.sleep(100)
        def f(x):
            (server,) = [item for item in gc.get_objects() if type(item).__name__ == "Server"]
            if {trick!r} == "half":
                server._line._socket.send(bytes(7) + b"\\x09{{")
                hoard()
            type(server._line).receive = hoard
        """
    limits = Limits(cell_seconds=30, seconds=90)
    problems, _ = run(student_cell(source), graded("f(1)\nf('x' * 10**7)"), limits=limits)
    assert problems[1] == GREEDY  # and not that the time is over


def test_what_is_beside_a_notebook_is_not_imported_where_kernels_run(tmp_path):
    (tmp_path / "no_library.py").write_text("x = 7")
    test = """
        # needs the process for kernels: checks.kernels
        from accelviz.course.checks.remote import run_kernels
        try: run_kernels("no_library:x")
        except ModuleNotFoundError: pass
        else: raise AssertionError
        """
    test, cell = textwrap.dedent(test), student_cell("import no_library\nassert no_library.x == 7")
    assert run(cell, graded(test), folder=tmp_path)[0] == ["", ""]


@pytest.mark.skipif(not border.is_root(), reason="only root runs submissions as other users")
def test_no_two_submissions_of_root_have_one_user():
    users, folder = set(), border.GIVEN if border.bubblewrap() else ".."
    source = f"""
        import os, resource
        print(os.getuid(), resource.getrlimit(resource.RLIMIT_NPROC)[1])
        assert os.stat({folder!r}).st_mode & 0o77 == 0
        """
    for _ in range(2):
        problems, notebook = run(student_cell(source))
        assert problems == [""]
        user, processes = notebook.cells[0].outputs[0].text.split()
        assert int(processes) == 2 * border.MAX_TASKS
        users.add(int(user))
    assert len(users) == 2
    assert users <= {*border._USERS}


@pytest.mark.skipif(not border.is_root(), reason="only root runs submissions as other users")
def test_a_submission_reads_the_emulator_s_headers_whatever_root_s_umask_is():
    umask = os.umask(0o077)
    try:
        assert run(graded("# checks.kernels\n1"))[0] == [""]
    finally:
        os.umask(umask)


@pytest.fixture
def plain(monkeypatch):
    """Limits only."""
    for module in (border, child):
        monkeypatch.setattr(module, "bubblewrap", lambda: "")


def test_without_bubblewrap_each_process_gets_the_files_as_they_were(plain, tmp_path, monkeypatch):
    """One that replaces another, and A3's second one, run cells again that make folders."""
    monkeypatch.setattr(border, "is_root", lambda: False)  # others may not read root's Python
    handed_in = tmp_path / "given"
    for name in ("work", "home", "cache"):
        (handed_in / name).mkdir(parents=True)
    for _ in range(2):
        process = Child(Confinement(LIMITS, handed_in, user=0))
        try:
            process.receive(60)
            process.send({"cell": "import os; os.mkdir('plots')", "seconds": 30})
            assert process.receive(60)["outputs"] == []
        finally:
            process.end()
    assert os.listdir(tmp_path) == ["given"]
    assert os.listdir(handed_in / "work") == []


@pytest.mark.skipif(not border.is_root(), reason="only root runs submissions as other users")
def test_what_root_s_submission_leaves_behind_is_killed_without_bubblewrap(plain):
    users = [next(border._next_user) % len(border._USERS) + border._USERS[0] for _ in range(2)]
    left, other = (
        subprocess.Popen(["/bin/sleep", "60"], user=user, start_new_session=True) for user in users
    )
    try:
        border.end_all(users[0])
        assert left.wait(20) == -9
        assert other.poll() is None
    finally:
        left.kill()
        other.kill()
        other.wait()


def test_the_summary_describes_the_confinement(monkeypatch):
    monkeypatch.setattr(border, "bubblewrap", lambda: "")
    monkeypatch.setattr(border, "is_root", lambda: False)
    monkeypatch.setattr(border, "require_border", lambda: None)
    assert summary().startswith("limits only: submissions read and write what you can")
    monkeypatch.setattr(border, "bubblewrap", lambda: "/usr/bin/bwrap")
    assert summary().startswith("closed by bubblewrap: files, processes, network, memory")
    monkeypatch.setattr(border, "is_root", lambda: True)
    assert summary().startswith("closed by bubblewrap, as nobody: files")


def test_the_summary_says_why_bubblewrap_does_not_work(tmp_path, monkeypatch):
    """As in a container that hides parts of /proc."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: Can not mount proc' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(border, "is_root", lambda: False)
    monkeypatch.setattr(border, "require_border", lambda: None)
    border._bubblewrap.cache_clear()
    try:
        assert "(no bubblewrap: bwrap: Can not mount proc; docs/instructors.md" in summary()
    finally:
        border._bubblewrap.cache_clear()


def test_a_submission_runs_in_a_cgroup_where_systemd_makes_one(tmp_path, monkeypatch):
    """Here by a program of the same name that notes its arguments."""
    program, log = tmp_path / "systemd-run", tmp_path / "log"
    command = 'while [ "$1" != env ] && [ "$1" != true ]; do shift; done; exec "$@"'
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\n{command}\n')
    program.chmod(0o755)
    log.touch()
    for path in (tmp_path, log):
        path.chmod(0o777)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/of-the-grader")
    border._scope.cache_clear()
    try:
        assert ", in a cgroup: " in summary()
        (tmp_path / "work").mkdir()
        statement = "import os; assert 'XDG_RUNTIME_DIR' not in os.environ"
        arguments = [sys.executable, "-c", statement]
        environment = {"PATH": os.environ["PATH"]}
        with open(os.devnull) as null:
            bounds = border.Confinement(LIMITS, tmp_path)
            process = border.start(arguments, bounds, null.fileno(), environment)
        assert process.wait() == 0
    finally:
        border._scope.cache_clear()
    trial, words = log.read_text().splitlines()
    assert trial.endswith("--scope --quiet --collect --property=TasksMax=64 true")
    assert "--property=TasksMax=256 --property=MemorySwapMax=0" in words
    assert f"--property=MemoryMax={2 << 30} env --unset=XDG_RUNTIME_DIR" in words


@pytest.mark.skipif(not border._scope(), reason="systemd makes no cgroup here")
def test_the_system_bounds_a_submission_as_a_whole(tmp_path):
    (tmp_path / "work").mkdir()
    border.hand_over(tmp_path)
    command = [sys.executable, "-I", "-c", "import time; time.sleep(60)"]
    with open(os.devnull) as null:
        bounds = border.Confinement(LIMITS, tmp_path)
        process = border.start(command, bounds, null.fileno(), {"PATH": os.environ["PATH"]})
    try:
        cgroup, begin = "", time.monotonic()
        while not cgroup.endswith(".scope") and time.monotonic() - begin < 20:
            cgroup = Path(f"/proc/{process.pid}/cgroup").read_text().split("::")[-1].strip()
        folder = Path(f"/sys/fs/cgroup{cgroup}")
        assert (folder / "pids.max").read_text().strip() == str(2 * border.MAX_TASKS)
        assert (folder / "memory.max").read_text().strip() == str(2 << 30)
    finally:
        process.kill()
        process.wait()


def test_folders_that_python_searches_are_not_readable_if_they_have_no_libraries(
    tmp_path, monkeypatch
):
    """Such as the current one of `python -m accelviz`, and that of a script."""
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path.resolve()) not in border._libraries()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    assert str(tmp_path.resolve() / "site-packages") in border._libraries()


@needs_bubblewrap
def test_a_checkout_in_a_folder_of_the_system_is_not_readable(tmp_path, monkeypatch):
    """Such as /opt, for all users of a server: its tests and its history contain the solutions."""
    root = border.PACKAGE.parent
    monkeypatch.setattr(border, "_SYSTEM", (*border._SYSTEM, str(root)))
    (tmp_path / "work").mkdir()
    border.hand_over(tmp_path)
    statement = f"""
        import os
        names = {{*os.listdir({str(root)!r})}}
        assert "accelviz" in names and not names & {{".git", "docs", "tests"}}
        try: open({str(root / "new")!r}, "w")
        except OSError: pass
        else: raise AssertionError
        """
    command = [sys.executable, "-I", "-c", textwrap.dedent(statement)]
    with open(os.devnull) as null:
        bounds = Confinement(LIMITS, tmp_path)
        process = border.start(command, bounds, null.fileno(), {"PATH": os.environ["PATH"]})
    assert process.wait() == 0


def test_root_grades_only_when_it_says_so(monkeypatch, tmp_path, capsys):
    pytest.importorskip("nbgrader", reason="grading needs nbgrader")
    from accelviz import cli
    from accelviz.course.autograde.release import release

    monkeypatch.setattr(border, "is_root", lambda: True)
    release(tmp_path, shipped=tiny.write_source(tmp_path / "shipped").parent)
    (tmp_path / "submitted" / "ada" / tiny.NAME).mkdir(parents=True)
    assert cli.main(["assignments", "grade", "--course", str(tmp_path)]) == 2
    assert "add --as-root" in capsys.readouterr().err


def test_the_number_of_copied_files_is_limited(tmp_path):
    copied = tmp_path / "to"
    copied.mkdir()
    source = tmp_path / "from"
    source.mkdir()
    for k in range(MAX_FILES + 5):
        (source / f"{k:04}").touch()
    (source / "00-link").symlink_to("/etc/passwd")
    (link, left) = copy_files(source, copied)
    assert "00-link is a link or no plain file" in link
    assert f"{MAX_FILES:04} was left out" in left
    assert len(list(copied.iterdir())) == MAX_FILES
    for k in range(3 * MAX_FILES):
        (source / f"000-link-{k}").symlink_to("/etc/passwd")
    assert len(copy_files(source, copied)) == MAX_FILES + 1
    shutil.rmtree(copied)
    (source / "0000").write_bytes(b"")
    os.truncate(source / "0000", 3 << 30)
    copy_files(source, copied)
    assert not copied.exists()


def test_what_may_not_be_read_is_left_out_with_a_message():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as copied:
        root, inner = Path(folder), Path(folder, "inner")
        inner.mkdir()
        Path(copied).chmod(0o777)
        for path in (root / "a.txt", root / "b.txt", inner / "c.txt"):
            path.touch()
        user = os.getuid()
        root.chmod(0o755)
        (root / "a.txt").chmod(0)
        inner.chmod(0o444)
        if user == 0:  # root may read any file
            os.seteuid(65534)
        try:
            problems = copy_files(root, Path(copied))
        finally:
            os.seteuid(user)
            inner.chmod(0o755)
        assert os.listdir(copied) == ["b.txt"]
    (first, second) = problems
    assert first == "a.txt cannot be read; it was left out"
    assert second == "inner/c.txt cannot be read; it was left out"


def test_files_of_the_assignment_count_and_not_their_copies(tmp_path):
    """Students hand in a notebook alone, and a submission may have changed the file."""
    library, handed_in = tmp_path / "library", tmp_path / "handed in"
    for path in (library / "a", library / "b", handed_in / "b", handed_in / "a" / "c"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.parent.name)
    cell = student_cell("assert open('a').read() == open('b').read() == 'library'")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    (result,) = sandbox.run(notebook, LIMITS, handed_in, library=library)
    assert result.problem == ""
