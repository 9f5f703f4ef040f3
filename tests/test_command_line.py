"""Every subcommand where something is missing: an answer and an exit status, no traceback."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import accelviz
from accelviz import cli
from accelviz.__main__ import main
from accelviz.emulator import cache
from accelviz.errors import ArgumentError

KERNEL = "__global__ void add(const float *X, float *Y) { Y[threadIdx.x] = X[threadIdx.x] + 1; }"
CHECK = "check add.cu --grid 1 --block 64 random:float32:64 out:float32:64"
#: A plain `pip install` in a folder that is read-only, for a user without a home.
BARE = """
import sys
from numba.core.caching import _CacheLocator
def refuse(self):
    raise OSError("read-only")
_CacheLocator.ensure_cache_path = refuse
extras = "anywidget cupy igraph IPython ipywidgets jupyterlab nbclient nbconvert nbformat nbgrader"
extras += " psutil pymetis torch torch_geometric"
sys.modules.update(dict.fromkeys(extras.split()))
from accelviz.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "add.cu").write_text(KERNEL)
    (tmp_path / "edges.dat").write_text("1,2\n3,2\n2,4\n")
    (tmp_path / "undirected.csv").write_text("# not directed\n1,2\n3,2\n2,4\n")
    for name in ("folder", "folder.png", "folder.csv"):
        (tmp_path / name).mkdir()
    return tmp_path


def run(folder, command, *program, **options):
    program = program or ("-m", "accelviz")
    environment = {**os.environ, **options.pop("env", {})}
    environment |= {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
    for name in ("ACCELVIZ_CACHE", "NUMBA_CACHE_DIR", "MPLCONFIGDIR"):
        environment.pop(name, None)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    result = subprocess.run(
        [sys.executable, *program, *command.split()],
        **options, text=True, cwd=folder, env=environment, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in (result.stderr or ""), result.stderr
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("--version", 0, r"\d"),
        ("doctor", 0, "cpu +ready"),
        ("doctor --warm", 2, r"CuPy is not installed.*accelviz\["),
        ("doctor --warm --arch sm_90", 2, r"CuPy is not installed.*accelviz\[nvrtc"),
        ("demo --columns 2 --output d.png", 0, "The picture is in d.png"),
        (CHECK, 0, "no mistake"),
        ("lab mine --copy-only", 0, "New files in"),
        ("lab mine", 2, r"jupyterlab: it is not installed.*accelviz\[lab"),
        ("assignments release --course new", 2, r"nbgrader: it is not installed.*accelviz\[course"),
        ("assignments preflight x.ipynb", 2, r"nbformat: it is not installed.*accelviz\[lab"),
        ("assignments grade --course new", 2, "nbgrader: it is not installed"),
        ("assignments leaderboard new", 2, "nbformat: it is not installed"),
    ],
)
def test_without_extras_home_and_writable_folders(folder, command, status, message):
    result = run(folder, command, "-c", BARE)
    assert result.returncode == status, result
    output = result.stderr if status else result.stdout
    assert re.search(message, output.replace("\n", " ")), result


@pytest.mark.long
@pytest.mark.parametrize("on_path", [False, True])
def test_commands_that_messages_name_run_in_the_reader_s_shell(folder, on_path):
    """A newcomer's shell has no virtual environment on its PATH."""
    folders = [str(Path(sys.executable).parent)] * on_path + ["/usr/bin", "/bin"]
    environment = {**os.environ, "PATH": os.pathsep.join(folders)}
    texts = ""
    for arguments in ("demo --columns 2 --output d.png", "lab mine"):
        result = run(folder, arguments, "-c", BARE, env=environment)
        texts += result.stdout + result.stderr
    ends = ("doctor`", "demo --graph mit8`", r"-m pip install 'accelviz\[lab\]'`")
    doctor, demo, python = (re.search(rf"`([^`\n]+) {end}", texts)[1] for end in ends)
    assert doctor == demo
    assert (os.sep in python) is not on_path
    for command, printed in (
        (f"{demo} --version", accelviz.__version__),
        (f"{python} -c 'import sys; print(sys.executable)'", sys.executable),
    ):
        answer = subprocess.run(
            command, shell=True, cwd=folder, env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert answer.stdout.strip() == printed


def test_a_notebook_s_messages_name_its_own_command(folder):
    code = f"import sys; sys.modules['ipykernel'] = sys\n{BARE}"
    assert "`%pip install 'accelviz[lab]'`" in run(folder, "lab mine", "-c", code).stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("demo --graph folder", "folder: there is no graph|folder: it is a folder"),
        ("demo --graph folder.csv", "folder.csv: it is a folder"),
        ("demo --output folder.png", "output: folder.png is a folder"),
        ("demo --output missing/d.png", "output: no folder missing"),
        ("demo --output /proc/d.png", "/proc/d.png"),
        ("check folder --grid 1 --block 1", "source: folder cannot be read"),
        (f"{CHECK} --save /proc/x", "/proc/x"),
        ("lab add.cu --copy-only", "folder: add.cu"),
        ("assignments release --course add.cu", "add.cu"),
        ("assignments preflight folder", "folder"),
        ("assignments preflight missing.ipynb", "missing.ipynb"),
        ("assignments grade --course add.cu", "add.cu"),
        ("assignments leaderboard add.cu", "add.cu"),
        ("demo --graph edges.dat", "no reader for this ending.*--option NAME=VALUE"),
        ("demo --graph undirected.csv", "symmetric: .*--option NAME=VALUE"),
        ("demo --graph undirected.csv --option colour=1", "colour: .*no such option"),
        ("demo --graph undirected.csv --option symmetric", "is not NAME=VALUE"),
        ("demo --graph undirected.csv --option symmetric=maybe", "symmetric: got 'maybe'"),
    ],
)
def test_wrong_places_and_options(folder, command, message, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    try:
        status = cli.main(command.split())
    except SystemExit as end:  # of argparse
        status = end.code
    captured = capsys.readouterr()
    assert status in (1, 2)
    assert re.search(message, (captured.err or captured.out).replace("\n", " ")), captured


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "nonzeros"),
    [
        ("edges.dat --option reader=.csv", 3),
        ("edges.dat --option reader=.csv --option symmetric=true --option columns=1,0", 6),
        ("undirected.csv --option symmetric=False --option base=1 --option n_nodes=9", 3),
    ],
)
def test_options_of_readers(folder, options, nonzeros, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert cli.main(f"demo --columns 2 --output d.png --graph {options}".split()) == 0
    rows = 9 if "n_nodes" in options else 4
    assert f"{rows} rows, {nonzeros} nonzeros" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    "command", ["--help", "doctor", "demo --columns 2", CHECK, "lab mine --copy-only"]
)
def test_output_that_cannot_be_written(folder, command):
    read, write = os.pipe()
    os.close(read)  # as of `| true`
    closed = run(folder, command, stdout=write)
    os.close(write)
    assert (closed.returncode, closed.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        result = run(folder, command, stdout=full)
    if command == "--help":  # argparse of later Pythons says nothing
        assert result.returncode in (0, 2)
        return
    assert result.returncode == 2
    assert "output: No space left on device" in result.stderr


@pytest.mark.parametrize("command", ["--help", "--version", "check add.cu --grid 0 --block 1"])
def test_output_that_is_closed(folder, command):
    # The path of the interpreter is its name, too: by another name it is not the environment's.
    command_line = "[sys.executable, '-m', *sys.argv[1:]]"
    code = f"import os, sys; os.close(1); os.execv(sys.executable, {command_line})"
    result = run(folder, f"accelviz {command}", "-c", code)
    assert result.returncode == (2 if "check" in command else 0)
    assert ("grid" in result.stderr) == ("check" in command)


def test_names_in_an_output_of_another_encoding(folder):
    result = run(folder, "assignments preflight Zoë.ipynb", env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode in (1, 2)  # 2: without nbformat
    assert result.returncode == 2 or "Zo\\xeb.ipynb: 1 problem" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.1, 0.3, 1.5])
def test_ctrl_c_at_any_time(folder, seconds):
    """The time is the process's own, which does not depend on what else the machine does."""
    code = f"""
        import os, signal
        from accelviz.__main__ import main
        signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_PROF, {seconds})
        main()
        """
    command = ["-c", textwrap.dedent(code), "demo", "--columns", "2000", "--graph", "collab"]
    result = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=folder)
    assert result.stderr.endswith("accelviz: interrupted\n")


@pytest.mark.parametrize("wrapper", [RuntimeError, ImportError, SystemError])
def test_ctrl_c_that_an_import_turns_into_another_exception(wrapper, monkeypatch, capsys):
    def command(arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise wrapper("of an import") from None

    monkeypatch.setattr(cli, "_run", command)
    monkeypatch.setattr(sys, "argv", ["accelviz", "demo"])
    handler = signal.getsignal(signal.SIGINT)  # a shell's job in the background ignores Ctrl-C
    assert main() == 130
    assert capsys.readouterr().err.endswith("accelviz: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.long
def test_ctrl_c_in_a_callback(monkeypatch, capsys):
    @ctypes.CFUNCTYPE(None)
    def callback():
        signal.raise_signal(signal.SIGINT)

    def command():
        callback()  # ctypes ignores its exceptions, as in Numba's compilation
        time.sleep(10)
        return 0

    monkeypatch.setattr(cli, "main", command)
    assert main() == 130
    assert capsys.readouterr().err == "accelviz: interrupted\n"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ArgumentError, match="cache: .*file.*ACCELVIZ_CACHE"):
        accelviz.load_graph("artist", cache=True)
    foreign = tmp_path / f"accelviz-emulator-{os.getuid()}"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache.folder() == foreign
    foreign.rmdir()
    (tmp_path / "other").mkdir()
    foreign.symlink_to(tmp_path / "other")  # another user's
    assert cache.folder().resolve() != tmp_path / "other"
    assert cache.folder() == cache.folder()
