"""Build published kernels as shared libraries, from their authors' public sources.

    python benchmarks/peers/build.py fetch --sources SOURCES
    python benchmarks/peers/build.py compile --sources SOURCES --output LIBRARIES

`fetch` clones each repository at the commit of the table in README.md. `compile` needs nvcc and
runs it once for each peer, as many at a time as there are cores; `measure/peers.py --libraries`
loads the results.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCH = "sm_90"


@dataclass(frozen=True)
class Peer:
    """A repository, and what its entries `name.cu` need to compile.

    Attributes
    ----------
    name : str
        Name of the peer in tables, and of its `.cu` file here.
    repository, commit : str
    includes : tuple of str
        Folders of the repository that the compiler searches.
    options : tuple of str
        Options of nvcc, those of the authors' own build where they change the code.
    cut : tuple of str
        (source, text, name): the part of a source before a text, which is compiled as `name`.
    """

    name: str
    repository: str
    commit: str
    includes: tuple[str, ...]
    options: tuple[str, ...] = ("-std=c++17",)
    cut: tuple[str, str, str] | None = None


PEERS = (
    Peer(
        "rode",
        "CRAFT-THU/RoDe",
        "f446e29802015df3d2fd9cc904f4cbe0cce97f3a",
        (".", "utils", "RoDe_SpMM", "RoDe_SDDMM"),
    ),
    Peer(
        "sputnik",
        "google-research/sputnik",
        "bbf5840ba5efccf01f862855c785f71bcc6ff1f0",
        (".",),
    ),
    Peer(
        "flashsparse",
        "ParCIS/FlashSparse",
        "168764612c1a2ad5b8661be22cfb6a8ae044bada",
        ("FlashSparse",),
    ),
    Peer(
        "voltrix",
        "YaqiXia/Voltrix-SpMM",
        "ea7ab6566f3c97931ae9ffe27f4e6ad4c2580a6b",
        ("voltrix/include",),
        ("-std=c++17", "-arch=sm_90a"),
    ),
    Peer("dgnn", "dgSPARSE/dgNN", "d5981fe0489ad5f1889cde48613f691eb70fac33", ("dgNN/src",)),
    Peer("dfgnn", "paoxiaode/DF-GNN", "ca6cf429218e22c82566a013f874c572cae93ac5", ("DFGNN/src",)),
    Peer(
        "turbo_gnn",
        "Abusagit/Turbo-GNN",
        "5a883d2e31fe71b7ab6d7131f200dc63dceb400d",
        ("csrc",),
        ("-std=c++20", "--use_fast_math", "--expt-relaxed-constexpr"),
        (
            "csrc/reduction/reduction_aggr.cu",
            "template <ReductionOp Op>\nvoid ",
            "reduction_aggr_kernels.cu",
        ),
    ),
    Peer(
        "qgtc",
        "YukeWang96/QGTC_PPoPP22",
        "bb7fc04aa5687b4e85437663702554158aeda809",
        ("QGTC_module",),
    ),
    Peer(
        "apnn_tc",
        "YukeWang96/APNN-TC-kernel",
        "53b42398d834280be2a664eb525c5afac3b90b6f",
        ("Common", "bmmaTensorCoreGemm/versions"),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("fetch", "compile"))
    parser.add_argument("--sources", type=Path, required=True, help="folder of the repositories")
    parser.add_argument("--output", type=Path, help="folder of the libraries")
    parser.add_argument("--peers", nargs="+", choices=[peer.name for peer in PEERS])
    options = parser.parse_args()
    peers = [peer for peer in PEERS if options.peers is None or peer.name in options.peers]
    if options.step == "fetch":
        for peer in peers:
            fetch(peer, options.sources)
        return
    if options.output is None:
        parser.error("--output is missing")
    options.output.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [pool.submit(compiled, peer, options.sources, options.output) for peer in peers]
        for peer, result in zip(peers, results, strict=True):
            print(f"{peer.name}: {result.result() or 'built'}", flush=True)


def folder(peer: Peer, sources: Path) -> Path:
    """Return the folder of a peer's repository."""
    return sources / peer.repository.split("/")[1]


def fetch(peer: Peer, sources: Path) -> None:
    """Clone a repository at its commit."""
    target = folder(peer, sources)
    if not target.exists():
        run(["git", "clone", f"https://github.com/{peer.repository}", str(target)])
    run(["git", "-C", str(target), "checkout", "-q", peer.commit])


def compiled(peer: Peer, sources: Path, output: Path) -> str:
    """Compile a peer's library; return the compiler's errors, "" if there are none."""
    root = folder(peer, sources)
    if not root.exists():
        return f"there is no {root}"
    with tempfile.TemporaryDirectory() as temporary:
        includes = [HERE / "stand_ins", temporary, *(root / name for name in peer.includes)]
        if peer.cut is not None:
            source, text, name = peer.cut
            before, cut_text, _ = (root / source).read_text("utf-8").partition(text)
            if not cut_text:
                return f"{source} has no {text!r}"
            Path(temporary, name).write_text(before, "utf-8")
        command = ["nvcc", "-O3", "-shared", "-w", "-x", "cu", "-Xcompiler", "-fPIC"]
        if not any(option.startswith("-arch") for option in peer.options):
            command.append(f"-arch={ARCH}")
        command += [*peer.options, *(f"-I{path}" for path in includes)]
        library = output / f"{peer.name}.so"
        return run([*command, str(HERE / f"{peer.name}.cu"), "-o", str(library)], check=False)


def run(command: Sequence[str], check: bool = True) -> str:
    """Run a command; return the end of its errors if it fails, else ""."""
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode and check:
        raise SystemExit(process.stderr)
    return process.stderr[-2000:] if process.returncode else ""


if __name__ == "__main__":
    main()
