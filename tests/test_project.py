"""The structure of the project: imports, dependencies and packaging."""

import ast
import importlib.metadata
import json
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import elftools
import numpy as np
import pytest
import yaml

import accelviz
from accelviz import files
from tests.compilers import needs_compiler
from tests.conftest import skips

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "accelviz"

#: The package's folders and modules in the order of CONTRIBUTING.md: a module imports from its own
#: folder and from those before it, so that there are no cycles.
ROOMS = (
    *("errors", "files", "emulator", "arrays", "compiled", "immutable", "markup"),
    *("random", "store"),
    *("graph", "card", "workload", "tiles"),
    *("datasets", "ordering", "partition", "plans", "strategies", "devices"),
    *("convolution", "layers", "bits", "many_gpus", "torch"),
    *("measure", "analysis", "plots", "widgets", "course", "demo", "cli", "__main__"),
)
#: Packages that only one folder may import, at any depth.
ONLY_IN = {
    "cupy": ("devices/cuda/",),
    "matplotlib": ("plots/",),
    "ipywidgets": ("widgets/",),
    "anywidget": ("widgets/",),
    "nbgrader": ("course/",),
    "torch": ("torch/", "many_gpus/process.py"),
    "nvshmem": ("many_gpus/",),
}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            if node.module != "accelviz":
                yield node.module
            else:
                yield from (f"accelviz.{alias.name}" for alias in node.names)


MODULES = sorted(PACKAGE.rglob("*.py"))
OPERATIONS = {folder.name for folder in (PACKAGE / "strategies").iterdir() if folder.is_dir()}


def each_module(modules):
    return pytest.mark.parametrize("path", modules, ids=lambda path: str(path.relative_to(PACKAGE)))


@each_module(MODULES)
def test_imports_go_down_the_list_only(path):
    module = path.relative_to(PACKAGE)
    room = module.parts[0].removesuffix(".py")
    for name in imports_of(path):
        top = name.partition(".")[0]
        if top in ONLY_IN:
            assert str(module).startswith(ONLY_IN[top]), f"{module} imports {name}"
        if top != "accelviz" or room == "__init__":
            continue
        wanted = name.split(".")[1] if "." in name else "__main__"
        if wanted not in ROOMS:  # `from accelviz import spmm` wants the whole package
            wanted = "__main__"
        if wanted == "__main__":
            assert room in ("demo", "cli", "__main__", "course"), f"{module} imports {name}"
        else:
            assert ROOMS.index(wanted) <= ROOMS.index(room), f"{module} imports {name}"


@each_module(sorted((PACKAGE / "strategies").glob("*/**/*.py")))
def test_operations_do_not_import_each_other(path):
    """Only layers and many_gpus combine operations; the registry lists them."""
    others = OPERATIONS - {path.relative_to(PACKAGE).parts[1]}
    for name in imports_of(path):
        assert not any(name.startswith(f"accelviz.strategies.{other}") for other in others), name


def test_every_module_has_a_room():
    top_level = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert top_level - {"__init__"} <= {*ROOMS}
    assert {*ROOMS} <= top_level


def test_the_map_of_the_house_is_drawn_from_todays_imports():
    drawn = runpy.run_path(str(ROOT / "docs" / "house.py"))["svg"]()
    assert (ROOT / "docs" / "house.svg").read_text("utf-8") == drawn, "run python docs/house.py"


def test_importing_accelviz_brings_in_nothing_heavy():
    heavy = ["cupy", "matplotlib", "ipywidgets", "anywidget", "IPython", "networkx", "pooch"]
    heavy += ["pandas", "numba", "scipy", "torch"]
    code = f"import sys, accelviz; print([m for m in {heavy} if m in sys.modules])"
    assert python("-W", "error", "-c", code).strip() == "[]"


def python(*arguments, **options):
    """Run Python in a separate process; return its output."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def test_the_public_names_are_there_and_documented():
    assert set(accelviz.__all__) >= {"load_graph", "plan", "spmm", "degree_sort", "strategies"}
    for name in accelviz.__all__:
        value = getattr(accelviz, name)
        assert "Returns\n" in value.__doc__ or isinstance(value, type) or name == "strategies"


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Names on PyPI and conda-forge where they differ.
CONDA_NAMES = {
    "matplotlib": "matplotlib-base",
    "igraph": "python-igraph",
    "playwright": "playwright-python",
}


def requirement(text):
    name, specifier = re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*])?\s*([^;]*)", text).groups()
    return name, specifier.strip()


def test_environment_yml_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["name"] == "accelviz"
    assert environment["channels"] == ["conda-forge"]
    conda = [item for item in environment["dependencies"] if isinstance(item, str)]
    (pip,) = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
    assert pip[0] == "-e ."
    extras = PROJECT["optional-dependencies"]
    wanted = dict(map(requirement, [*PROJECT["dependencies"], *extras["lab"], *extras["test"]]))
    wanted = {CONDA_NAMES.get(name, name): spec for name, spec in wanted.items()}
    wanted |= {"python": PROJECT["requires-python"], "pip": ""}
    wanted |= {name: spec for name, spec in map(requirement, extras["dev"]) if name in BACKEND}
    assert dict(map(requirement, [*conda, *pip[1:]])) == wanted


BACKEND = ("editables", "hatchling")


def test_environment_yml_is_safe_without_a_gpu():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    active = json.dumps(environment)
    assert "cupy" not in active
    assert "cuda" not in active
    assert "cupy" in (ROOT / "environment.yml").read_text()  # the documented addition


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-cuda12.lock"])
def test_the_lock_files_pin_every_dependency_exactly(lock):
    lines = (ROOT / lock).read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if not line.lstrip().startswith("#")}
    assert all("==" in line for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    cuda = ("cuda12",) if "cuda12" in lock else ("cuda13", "nvrtc")
    for extra in ("emulator", "lab", "orders", "test", "dev", "docs", *cuda):
        for text in [*PROJECT["dependencies"], *extras[extra]]:
            assert requirement(text)[0] in pinned, text


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.long
@needs_compiler
def test_the_emulator_is_installed_with_numpy_and_pyelftools_alone(wheel, tmp_path):
    python("-m", "venv", "--without-pip", str(tmp_path))
    program = tmp_path / "bin" / "python"
    python("-m", "pip", "--python", str(program), "install", "--no-index", "--no-deps", str(wheel))
    (site,) = tmp_path.glob("lib/python3*/site-packages")
    for module in (np, elftools):
        folder = Path(module.__file__).parent
        for part in (folder, folder.with_suffix(".libs")):
            if part.exists():
                (site / part.name).symlink_to(part)
    code = """
import sys
import numpy as np
from accelviz import emulate
X = np.arange(4, dtype=np.float32)
emulate("__global__ void twice(float *X) { X[threadIdx.x] *= 2.0f; }", 1, 4, X)
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("accelviz.")}
print(X.tolist(), sorted(rooms))
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True)
    run = partial(run, env=environment)
    answer = run([program, "-c", code]).stdout
    assert answer == "[0.0, 2.0, 4.0, 6.0] ['emulator', 'errors', 'files']\n"
    kernel = "__global__ void twice(float *X) { X[threadIdx.x] *= 2.0f; }"
    options = ["check", "-", "--grid", "1", "--block", "4", "ones:float32:4"]
    command = [tmp_path / "bin" / "accelviz", *options]
    answer = run(command, input=kernel).stdout
    assert answer == "-: no mistake: twice, 1 block of 4 threads\n"


def test_the_wheel_holds_kernels_and_graphs_and_stays_small(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        archive.extractall(tmp_path / "site")
    assert sum(sizes.values()) < 12_000_000
    assert "accelviz/py.typed" in sizes
    page_sources = [name for name in sizes if name.endswith((".ts", ".js", "package.json"))]
    assert page_sources == []
    (metadata,) = (tmp_path / "site").glob("accelviz-*/METADATA")
    links = re.findall(r"\]\(([^)]*)\)", metadata.read_text("utf-8"))
    assert links
    assert all(link.startswith("https:") for link in links)  # others lead nowhere on an index
    shipped = {
        "accelviz/kernels": (ROOT / "kernels", "*.cu*"),
        "accelviz/results": (ROOT / "benchmarks" / "results", "*.csv*"),
        "accelviz/notebooks": (ROOT / "notebooks", "*.ipynb"),
        "accelviz/course/rungs": (PACKAGE / "course" / "rungs", "*.cu"),
        "accelviz/datasets/graphs": (PACKAGE / "datasets" / "graphs", "*.*"),
    }
    for folder, (source, pattern) in shipped.items():
        names = {f"{folder}/{p.relative_to(source).as_posix()}" for p in source.rglob(pattern)}
        assert names
        assert names <= sizes.keys()
    code = (
        "import accelviz, pathlib; plan = accelviz.plan('cora'); plan.kernel.source(); "
        "from accelviz import cli; from accelviz.devices.cuda import state; "
        "assert 'make' not in state._install(13); accelviz.explore('cora').save('x.html'); "
        "cli.main(['lab', 'mine', '--copy-only']); "
        "assert len([*pathlib.Path('mine').glob('*.ipynb')]) > 11; "
        "print(pathlib.Path(accelviz.__file__).parts[-3])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "site",
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split()[-1] == "site"


def test_the_readme_s_python_runs_and_says_the_truth():
    text = (ROOT / "README.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    names = {}
    exec(code, names)
    plan = names["plan"]
    assert f"shape {plan.metadata.shape}" in code
    assert f"{plan.statistics.idle_share:.3f} of warp time" in code
    assert names["Y"].shape == (19717, 64)


def test_the_readme_s_commands_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    targets = set(re.findall(r"make ([a-z]+)", text))
    makefile = (ROOT / "Makefile").read_text()
    assert targets >= {"demo", "test", "lab"}
    for target in targets - {"to"}:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_a_container_gets_what_grading_needs_and_not_the_whole_checkout():
    """A checkout may have an environment of another machine, and courses with submissions."""
    text = (ROOT / "docs" / "Containerfile").read_text("utf-8")
    words = [line.split()[1:-1] for line in text.split("\n") if line.startswith("COPY ")]
    copied = {(ROOT / path).resolve() for line in words for path in line}
    assert ROOT not in copied
    assert all(path.exists() for path in copied)
    assert copied >= {PACKAGE, files.kernel_directory(), files.results_directory()}


def headings(page):
    """Return the anchors of a page's headings, as on GitHub."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


PAGES = ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", *ROOT.glob("docs/*.md")]


@pytest.mark.parametrize("page", [ROOT / page for page in PAGES], ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    text = page.read_text("utf-8")
    tables = re.findall(r"^:file: /(.*)", text, re.M)
    text += "".join((ROOT / table).read_text("utf-8") for table in tables)
    for link, anchor in re.findall(r"]\(([^)#:]*)#?([^):]*)\)", text):
        target = (page.parent / link).resolve() if link else page
        assert target.exists(), link
        if anchor:
            assert anchor in headings(target), f"{link}#{anchor}"


#: Rows above which a table is a CSV beside a picture.
MOST_ROWS = 12


@pytest.mark.parametrize("page", [ROOT / page for page in PAGES], ids=lambda page: page.name)
def test_tables_of_pages_are_short(page):
    tables = re.findall(r"(?:^[ \t]*\|.*\n?)+", page.read_text("utf-8"), re.M)
    lines = map(str.splitlines, tables)
    long_tables = [table[0] for table in lines if len(table) > MOST_ROWS + 2]  # with its heading
    assert long_tables == []


def test_what_is_installed_is_what_is_locked():
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("not in the environment that make installs")
    cuda = ROOT / ".venv" / ".cuda"
    lock = "requirements-cuda12.lock" if cuda.exists() and "12" in cuda.read_text() else None
    pinned = set()
    for file in (lock or "requirements.lock", "requirements-torch.lock"):
        for line in (ROOT / file).read_text().splitlines():
            name, _, version = line.partition(";")[0].strip().partition("==")
            pinned.add((name, version))
    # Not on sys.path, because setuptools adds its own folder there when another test imports it.
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    installed = list(importlib.metadata.distributions(path=list(places)))
    installed_names = {distribution.metadata["Name"] for distribution in installed}
    assert len(installed) > 50
    for distribution in installed:
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        # PyTorch's build determines its CUDA libraries.
        of_cuda = name.startswith(("nvidia-", "cuda-", "triton")) and name not in dict(pinned)
        by_torch = of_cuda and "torch" in installed_names
        if name not in ("accelviz", "pip", "setuptools", "wheel") and not by_torch:
            assert (name, distribution.version.partition("+")[0]) in pinned


def test_the_list_of_skipped_tests_names_neither_parameters_nor_groups():
    reports = [
        SimpleNamespace(
            nodeid=f"tests/test_a.py::test_b{ending}", longrepr=("", 1, "Skipped: slow")
        )
        for ending in ("", "[1-x@y]", "@grader", "[1]@grader")
    ]
    assert skips(SimpleNamespace(stats={"skipped": reports})) == {"tests/test_a.py::test_b: slow"}
    for line in (ROOT / "tests" / "skips.txt").read_text("utf-8").splitlines():
        path, _, rest = line.removeprefix("? ").partition("::")
        assert f"\ndef {rest.partition(':')[0]}(" in (ROOT / path).read_text("utf-8")
