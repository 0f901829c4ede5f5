"""Rooms of the package, the imports between them, and whether they run downwards only.

    python tools/rooms.py [ROOT]

A room is a folder of the package; a module that lies directly in the package is a room of its own.
The floors are read from the table in `docs/design.md`, so that the page and the check cannot
differ. Imports inside functions count; those under ``if TYPE_CHECKING`` do not run, and are not
counted. Exit status 1 where an import goes up or sideways, where rooms import in a circle, or
where a room is missing in the table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "structsvm_papk"
PAGE = Path("docs", "design.md")
_ROW = re.compile(r"^\|\s*(\d+)\s*\|([^|]*)\|")
_TOP = "__init__"


def floors(root: Path) -> dict[str, int]:
    """Floor of each room, from the design page's table (rows ``| floor | rooms | ..``)."""
    rows = [_ROW.match(line) for line in (root / PAGE).read_text().splitlines()]
    return {
        room.removesuffix("/").removesuffix(".py"): int(row[1])
        for row in rows
        if row
        for room in re.findall(r"`([\w/.]+)`", row[2])
    }


def room_of(module: str) -> str:
    """Room of a module: ``solvers/bundle`` of ``structsvm_papk.solvers.bundle.qp``."""
    return "/".join(module.split(".")[1:-1]) or module.rpartition(".")[2]


def modules(root: Path) -> dict[str, Path]:
    """Dotted name and file of every module; a package is its ``__init__``."""
    files = sorted((root / PACKAGE).rglob("*.py"))
    return {".".join(f.relative_to(root).with_suffix("").parts): f for f in files}


def imports(root: Path) -> Iterator[tuple[str, str, int]]:
    """Every import of one module of the package by another: ``(importer, imported, line)``."""
    known = modules(root)
    for name, file in known.items():
        for node, line in _import_nodes(ast.parse(file.read_text())):
            for target in _targets(node, known):
                if target != name:
                    yield name, target, line


def _import_nodes(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, node.lineno
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _import_nodes(node)


def _targets(node: ast.Import | ast.ImportFrom, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        names = [f"{base}.{alias.name}" for alias in node.names]
    else:
        base, names = "", [alias.name for alias in node.names]
    for name in names:
        for candidate in (name, f"{name}.{_TOP}", base, f"{base}.{_TOP}"):
            if candidate in known:
                yield candidate
                break


def arrows(root: Path) -> dict[tuple[str, str], list[str]]:
    """Rooms that import another room, and where."""
    places = defaultdict(list)
    for importer, imported, line in imports(root):
        pair = room_of(importer), room_of(imported)
        if pair[0] != pair[1]:
            places[pair].append(f"{importer}:{line} imports {imported}")
    return dict(places)


def faults(root: Path) -> list[str]:
    """What breaks the rule, one sentence each."""
    floor, between = floors(root), arrows(root)
    rooms = {room_of(name) for name in modules(root)} - {_TOP}
    out = [f"room {room!r} is missing in the table of {PAGE}" for room in sorted(rooms - {*floor})]
    out += [f"{PAGE} names {room!r}, which does not exist" for room in sorted({*floor} - rooms)]
    for (upper, lower), places in sorted(between.items()):
        if upper == _TOP:
            continue  # the package's own names
        if lower == _TOP:
            out += [f"{place}: import from the room itself" for place in places]
        elif floor.get(upper, 99) <= floor.get(lower, -1):
            out += [f"{place}: not downwards" for place in places]
    return list(dict.fromkeys(out)) + _module_circles(root)


def _module_circles(root: Path) -> list[str]:
    """Circles among modules, inside a room too."""
    graph = defaultdict(set)
    for importer, imported, _ in imports(root):
        graph[importer].add(imported)
    state: dict[str, int] = {}
    out: list[str] = []

    def visit(name: str, path: list[str]) -> None:
        state[name] = 1
        for other in sorted(graph[name]):
            if state.get(other) == 1:
                out.append("circle: " + " -> ".join([*path[path.index(other) :], other]))
            elif other not in state:
                visit(other, [*path, other])
        state[name] = 2

    for name in sorted(graph):
        if name not in state:
            visit(name, [name])
    return out


def main(root: Path) -> int:
    """Print the rooms from the top floor down, their arrows, and the faults."""
    floor, between = floors(root), arrows(root)
    lines: dict[str, int] = defaultdict(int)
    files: dict[str, int] = defaultdict(int)
    for name, file in modules(root).items():
        lines[room_of(name)] += len(file.read_text().splitlines())
        files[room_of(name)] += 1
    for room in sorted(lines, key=lambda room: (-floor.get(room, 99), room)):
        below = sorted(lower for upper, lower in between if upper == room)
        print(
            f"{floor.get(room, '?'):>2}  {room:<20}{files[room]:>3} files {lines[room]:>6} lines"
            f"  -> {', '.join(below) or '-'}"
        )
    print(f"{len(lines)} rooms, {len(between)} arrows, {sum(lines.values())} lines")
    broken = faults(root)
    print("\n".join(broken) or "all imports run downwards, no circles")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
