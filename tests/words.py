"""Refuse filler names: a variable, function or parameter is named for what it holds.

`python tests/words.py [PATH ...]` checks the files that git tracks and prints one line per name.
The rule and the terms to use are in CONTRIBUTING.md.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

#: Names that do not say what they hold.
FILLERS = {
    *("found", "each", "what", "own", "place", "right", "given", "made", "kept", "there", "shown"),
    *("none", "here", "thing", "things", "stuff", "those", "these", "whose"),
}
#: (file, name) pairs that are terms of the field, with the reason.
EXCEPTIONS = {
    ("accelviz/datasets/synthetic/random_models.py", "right"): "the right half of a quadrant",
}
#: Kernels whose text must not change, because recorded reports quote their names.
RECORDED = "benchmarks/checkers/corpus/kernels/"
#: A declaration in JavaScript, TypeScript, C++ or CUDA: a keyword or type, then the name.
DECLARATION = re.compile(
    r"\b(?:const|let|var|function|auto|int|long|unsigned|bool|float|double|size_t|char|uint32_t|"
    r"uint64_t|int4|float4|half|T)\b[\s*&]+(\w+)\s*(?=[=;,()\[:])"
)


def python_names(text):
    """Yield (line, name) of each name that a Python source binds."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def declared_names(text):
    """Yield (line, name) of each name that a C++, CUDA or JavaScript source declares."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in DECLARATION.finditer(line.partition("//")[0]):
            yield number, match[1]


def notebook_names(text):
    """Yield (cell id, name) of each name that a notebook's cells or solutions bind.

    CUDA sources are strings in cells that contain `__global__`, and fenced blocks.
    """
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            blocks = [("python", source)]
        else:
            blocks = re.findall(r"^```(\w+)\n(.*?)^```", source, re.S | re.M)
        for language, block in blocks:
            names = list(declared_names(block)) if "__global__" in block else []
            if language in ("cuda", "cpp"):
                names = declared_names(block)
            elif language == "python":
                names += python_names(re.sub(r"^[%!].*$", "", block, flags=re.M))
            for _, name in names:
                yield cell.get("id", "?"), name


def fillers(path, text):
    """Yield (line, name) of each filler name in a file; a notebook has cell ids for lines."""
    by_ending = {".py": python_names, ".ipynb": notebook_names}
    for line, name in by_ending.get(Path(path).suffix, declared_names)(text):
        if name.strip("_") in FILLERS and (path, name) not in EXCEPTIONS:
            yield line, name


def main(paths):
    """Print the filler names of the tracked files under `paths`; return 1 if there are any."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *paths],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    endings = (".py", ".ipynb", ".js", ".ts", ".cu", ".cuh", ".h", ".cpp")
    count = 0
    for path in filter(lambda name: name.endswith(endings), listing.stdout.splitlines()):
        if not Path(path).exists() or path.startswith(RECORDED):
            continue
        for line, name in fillers(path, Path(path).read_text("utf-8")):
            print(f"{path}:{line}: `{name}` does not say what it holds")
            count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
