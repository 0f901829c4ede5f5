"""The supported names: what the policy page lists, the rooms export and the reference describes."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import structsvm_papk
from helpers.policy import listed, supported
from structsvm_papk import PAPKRanker
from structsvm_papk.rankers.solver_choice import SOLVERS
from structsvm_papk.surrogates.losses import SURROGATES

pytestmark = pytest.mark.portable

ROOT = Path(__file__).parents[2]
PACKAGE = "structsvm_papk"
_IMPORT = re.compile(rf"^ *from ({PACKAGE}\S*) import (.+)$", re.MULTILINE)

if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)


def exporting():
    """Rooms and modules of the package's top that export names."""
    folder = ROOT / PACKAGE
    files = [*folder.glob("*/__init__.py"), folder / "errors.py"]
    rooms = {file.parent.name if file.stem == "__init__" else file.stem for file in files}
    modules = {room: import_module(f"{PACKAGE}.{room}") for room in rooms}
    return {module.__name__: module for module in modules.values() if hasattr(module, "__all__")}


def test_the_page_lists_what_the_rooms_export():
    top = set(structsvm_papk.__all__)
    exported = {name: {*module.__all__} - top for name, module in exporting().items()}
    exported[PACKAGE] = top
    exported = {name: names for name, names in exported.items() if names}
    assert {path: set(names) for path, names in listed().items()} == exported


def test_listed_names_can_be_imported_and_are_described_and_few():
    values = [value for path in listed() for value in supported(path).values()]
    assert all(v.__doc__ for v in values if inspect.isclass(v) or inspect.isfunction(v))
    assert len(values) <= 63


def test_the_reference_describes_the_supported_names_and_what_they_return():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    documented = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    known = {f"{path}.{name}" for path, names in listed().items() for name in names}
    described = [name for name in documented if name in known]
    assert sorted(described) == sorted(known)
    functions = [value for path in listed() for value in supported(path).values()]
    returned = [getattr(value, "__annotations__", {}).get("return", "") for value in functions]
    held = []  # by the attributes of what is described
    for path in documented:
        module, _, name = path.rpartition(".")
        held += getattr(getattr(import_module(module), name), "__annotations__", {}).values()
    for path in set(documented) - known:  # what supported functions return, and what that holds
        name = path.rpartition(".")[2]
        assert any(name in str(each) for each in [*returned, *held]), path


def test_the_ranker_names_every_surrogate_and_solver():
    (choice,) = re.findall(r"^    surrogate : \{(.*?)\}", PAPKRanker.__doc__, re.MULTILINE)
    assert set(re.findall(r"'(\w+)'", choice)) == {"auto", *SURROGATES}
    (choice,) = re.findall(r"^    solver : (.*?)^    tol :", PAPKRanker.__doc__, re.DOTALL | re.M)
    assert set(SOLVERS) <= set(re.findall(r"'(\w+)'", choice))


def functions_of(value):
    """A function, or the public methods and properties of a class of this package."""
    owners = [o for o in getattr(value, "__mro__", ()) if o.__module__.startswith(PACKAGE)]
    for name, each in [("__call__", value), *(item for o in owners for item in vars(o).items())]:
        each = getattr(each, "__func__", getattr(each, "fget", each))  # class methods, properties
        if inspect.isfunction(each) and (name in ("__init__", "__call__") or name[0] != "_"):
            yield each


def test_supported_names_are_annotated():
    """With what `mypy` holds against the code; no result is of any kind."""
    functions = [f for p in listed() for v in supported(p).values() for f in functions_of(v)]
    assert len(functions) > 150
    for function in functions:
        given = inspect.signature(function)
        assert given.return_annotation not in (given.empty, Any, "Any"), function
        for name, parameter in given.parameters.items():
            own = name in ("self", "cls")
            assert own or parameter.annotation is not parameter.empty, (function, name)


def imported_names(page):
    """Modules of the package and what is imported from them, of a page or a program."""
    text = page.read_text()
    if page.suffix == ".md":
        return [(path, names.split(", ")) for path, names in _IMPORT.findall(text)]
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return [
        (node.module, [alias.name for alias in node.names])
        for node in nodes
        if node.module.split(".")[0] == PACKAGE
    ]


def test_pages_examples_and_studies_import_supported_names_only():
    rooms = {path.removeprefix(f"{PACKAGE}.") for path in listed()}
    known = listed() | {PACKAGE: {*listed()[PACKAGE], *rooms, "cli", "__version__"}}
    programs = [
        *(ROOT / "examples").glob("*.py"),
        *(ROOT / "benchmarks" / "paper").rglob("*.py"),
        *(ROOT / "benchmarks" / "studies").rglob("*.py"),
    ]
    for page in [*(ROOT / "docs").rglob("*.md"), *programs]:
        for path, names in imported_names(page):
            unsupported = set(names) - set(known.get(path, ()))
            assert not unsupported, f"{page.name}: {unsupported} of {path}"
