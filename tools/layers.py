"""Layers of the package and the imports between its subpackages.

    python tools/layers.py             layers, sizes and imports; what breaks the rules
    python tools/layers.py --figure    the figure in CONTRIBUTING.md

The layers are read from the table in `docs/design.md`, so that page and check cannot differ.
Imports inside functions and those for annotations count. Exit status 1 where a layer imports one
above it, where two subpackages of the core import each other, where modules import each other in a
circle, or where a subpackage is missing in the table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "structsvm_papk"
PAGE = Path("docs", "design.md")
CORE = "core"  # its subpackages know nothing of each other
_ROW = re.compile(r"^\| (\w+) \|((?: `[\w/]+`,?)+) \|", re.MULTILINE)


def layers(root: Path) -> dict[str, list[str]]:
    """Subpackages and single modules of each layer, from the top down."""
    rooms: dict[str, list[str]] = {}
    for layer, names in _ROW.findall((root / PAGE).read_text()):
        rooms.setdefault(layer, []).extend(re.findall(r"`(\w+)/?`", names))
    return rooms


def modules(root: Path) -> dict[str, Path]:
    """Dotted name and file of every module."""
    files = sorted((root / PACKAGE).rglob("*.py"))
    names = (".".join(f.relative_to(root).with_suffix("").parts) for f in files)
    return {name.removesuffix(".__init__"): f for name, f in zip(names, files, strict=True)}


def subpackage(module: str) -> str:
    """``solvers`` of ``structsvm_papk.solvers.qp``; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def imports(root: Path) -> Iterator[tuple[str, str, int]]:
    """Every import of one module of the package by another: ``(importer, imported, line)``."""
    known = modules(root)
    for name, file in known.items():
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            else:
                continue
            for target in wanted:
                imported = target if target in known else target.rpartition(".")[0]
                if imported in known and imported != name:
                    yield name, imported, node.lineno


def faults(root: Path) -> list[str]:
    """What breaks the rules, one sentence each."""
    table = layers(root)
    height = {name: h for h, names in enumerate(reversed(table.values())) for name in names}
    present = {subpackage(name) for name in modules(root)} - {""}
    out = [f"{name!r} is missing in the table of {PAGE}" for name in sorted(present - {*height})]
    out += [f"{PAGE} names {name!r}, which does not exist" for name in sorted({*height} - present)]
    graph: dict[str, set[str]] = {}
    for importer, imported, line in imports(root):
        upper = subpackage(importer)
        lower = subpackage(imported)
        if not upper:
            continue  # the package's own names
        graph.setdefault(importer, set()).add(imported)
        place = f"{importer}:{line} imports {imported}"
        if height.get(upper, 99) < height.get(lower, 99):
            out.append(f"{place}: not downwards")
        elif upper != lower and {upper, lower} <= {*table.get(CORE, ())}:
            out.append(f"{place}: the core's parts do not know each other")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        out.append("circle: " + " -> ".join(reversed(error.args[1])))
    return list(dict.fromkeys(out))


def between(root: Path) -> dict[str, set[str]]:
    """The subpackages and single modules that each of them imports."""
    below: dict[str, set[str]] = {subpackage(name): set() for name in modules(root)}
    for importer, imported, _ in imports(root):
        below[subpackage(importer)].add(subpackage(imported))
    return {name: names - {name, ""} for name, names in below.items()}


def figure(root: Path) -> str:
    """The folders by layer, with the imports between them that no other import implies."""
    table = layers(root)
    order = [name for names in table.values() for name in names if (root / PACKAGE / name).is_dir()]
    direct = {name: names.intersection(order) for name, names in between(root).items()}
    lines = []
    for layer, names in table.items():
        heading = layer
        for name in filter(order.__contains__, names):
            implied = set().union(*(_reached(direct, other) for other in direct[name]))
            arrows = ", ".join(other for other in order if other in direct[name] - implied)
            lines.append(f"{heading:<12}{name:<13}{'-> ' + arrows if arrows else ''}".rstrip())
            heading = ""
    return "\n".join(lines)


def _reached(graph: dict[str, set[str]], name: str) -> set[str]:
    """All that `name` imports, directly or through others."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        new = graph[ahead.pop()] - reached
        reached |= new
        ahead.extend(new)
    return reached


def main(root: Path) -> int:
    """Print the layers from the top down with sizes and imports, and the faults."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name, file in modules(root).items():
        lines[subpackage(name)] += file.read_text().count("\n")
        files[subpackage(name)] += 1
    below = between(root)
    for layer, names in layers(root).items():
        print(layer)
        for name in names:
            others = ", ".join(sorted(below.get(name, set())))
            print(f"  {name:<14}{files[name]:>3} files {lines[name]:>6} lines  -> {others or '-'}")
    print(f"{files.total()} files, {lines.total()} lines")
    broken = faults(root)
    print("\n".join(broken) or "all imports run downwards, no circles")
    return 1 if broken else 0


if __name__ == "__main__":
    if "--figure" in sys.argv[1:]:
        print(figure(Path.cwd()))
        sys.exit(0)
    sys.exit(main(Path.cwd()))
