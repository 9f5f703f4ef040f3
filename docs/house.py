"""Draw the map of the house, docs/house.svg, from the imports of the package.

A room is a folder or file of accelviz/. It stands one floor above the highest room that it imports.
An arrow leads from a room to each room that it imports and reaches in no other way. Beside a floor
stand the first sentences of its rooms' docstrings.

    python docs/house.py
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "accelviz"
#: Entry points import everything; arrows from them would say nothing.
ENTRY_POINTS = {"__init__", "__main__"}
BOX_WIDTH, BOX_HEIGHT, GAP, FLOOR_HEIGHT = 118, 34, 14, 84
TEXT_WIDTH, LINE_HEIGHT = 680, 16
STYLE = """
  .room rect { fill: #eef3fb; stroke: #4169a8; rx: 6px; }
  .room text { fill: #14233c; font: 13px system-ui, sans-serif; text-anchor: middle; }
  .purpose { fill: #14233c; font: 12px system-ui, sans-serif; }
  path { fill: none; stroke: #8a93a3; stroke-width: 1.2; }
  @media (prefers-color-scheme: dark) {
    .room rect { fill: #1d2a40; stroke: #7fa3e0; }
    .room text { fill: #e8eefa; }
    .purpose { fill: #e8eefa; }
    path { stroke: #77839a; }
  }
"""


def room_of(path: Path) -> str:
    """Return the room of a module: its folder in the package, or its own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    rooms: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        imported = rooms.setdefault(room_of(path), set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "accelviz":
                names = [f"accelviz.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            imported |= {name.split(".")[1] for name in names if name.startswith("accelviz.")}
    for entry_point in ENTRY_POINTS:
        rooms.pop(entry_point, None)
    return {room: (names & rooms.keys()) - {room} for room, names in rooms.items()}


def purpose(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    path = PACKAGE / room / "__init__.py"
    path = path if path.exists() else PACKAGE / f"{room}.py"
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def reachable(room: str, rooms: dict[str, set[str]]) -> set[str]:
    """Return the rooms that a room needs, directly or through others."""
    return rooms[room].union(*(reachable(name, rooms) for name in rooms[room]))


def floors(rooms: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms of each floor, from the ground up."""
    level: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in level:
            level[room] = 1 + max(map(height, rooms[room]), default=-1)
        return level[room]

    for room in rooms:
        height(room)
    return [[room for room in rooms if level[room] == n] for n in range(max(level.values()) + 1)]


def svg() -> str:
    """Return the picture."""
    rooms = imports()
    house = floors(rooms)
    width = max(map(len, house)) * (BOX_WIDTH + GAP) + GAP
    height = len(house) * FLOOR_HEIGHT
    position: dict[str, tuple[float, float]] = {}
    texts = []
    for n, floor in enumerate(house):
        # A room stands near the rooms that it imports.
        floor.sort(
            key=lambda room: (
                sum(position[name][0] for name in rooms[room]) / (len(rooms[room]) or 1)
            )
        )
        y = height - (n + 0.5) * FLOOR_HEIGHT
        for line, room in enumerate(floor):
            text_y = y + (line - len(floor) / 2 + 0.75) * LINE_HEIGHT
            texts.append(
                f'<text class="purpose" x="{width + 20}" y="{text_y:.0f}"><tspan '
                f'font-weight="bold">{escape(room)}</tspan>: {escape(purpose(room))}</text>'
            )
        left = (width - len(floor) * (BOX_WIDTH + GAP) + GAP) / 2
        for column, room in enumerate(floor):
            x = left + column * (BOX_WIDTH + GAP) + BOX_WIDTH / 2
            position[room] = (x, y)
    arrows, boxes = [], []
    for room, imported in rooms.items():
        x, y = position[room]
        through_others = set().union(*(reachable(name, rooms) for name in imported))
        for name in sorted(imported - through_others):
            to_x, to_y = position[name]
            start, end = y + BOX_HEIGHT / 2, to_y - BOX_HEIGHT / 2 - 5
            bend = (start + end) / 2
            curve = f"M{x:.0f} {start:.0f} C{x:.0f} {bend:.0f} {to_x:.0f} {bend:.0f}"
            arrows.append(f'<path d="{curve} {to_x:.0f} {end:.0f}" marker-end="url(#tip)"/>')
        title = f"{room} imports {', '.join(sorted(imported)) or 'nothing of the package'}"
        boxes.append(
            f'<g class="room"><title>{escape(title)}</title><rect x="{x - BOX_WIDTH / 2:.0f}" '
            f'y="{y - BOX_HEIGHT / 2:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}">{escape(room)}</text></g>'
        )
    tip = (
        '<marker id="tip" viewBox="0 0 6 6" refX="4" refY="3" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0 L5 3 L0 6"/></marker>'
    )
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width + TEXT_WIDTH} {height}">',
        "<title>The rooms of accelviz and what they import</title>",
        f"<style>{STYLE}</style><defs>{tip}</defs>",
        *arrows,
        *boxes,
        *texts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (DOCS / "house.svg").write_text(svg(), "utf-8")
