"""The layers of the package, read from the table of the design page."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.portable

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
layers = pytest.importorskip("layers")


@pytest.fixture(scope="module", autouse=True)
def parsed_once():
    """The modules of a folder are parsed for the first test that asks for their imports."""
    every_import = layers.imports
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "imports", cache(lambda root: [*every_import(root)]))
        yield


def test_kernels_are_compiled_by_one_decorator():
    """numba's own would raise where no cache can be written."""
    users = [
        path.name
        for path in (ROOT / "structsvm_papk").rglob("*.py")
        if re.search(r"^(from numba import .*\bnjit\b|import numba\b)", path.read_text(), re.M)
    ]
    assert users == ["_jit.py"]


def test_faults_are_seen(tmp_path):
    """An import upwards, the core's parts, a circle of annotations, an unknown subpackage."""
    (tmp_path / "docs").mkdir()
    table = "| upper | `upper/` | x |\n| core | `one/`, `two/` | x |\n"
    (tmp_path / "docs" / "design.md").write_text(table)
    package = tmp_path / "structsvm_papk"
    for name in ("upper", "one", "two", "other"):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "upper" / "a.py").write_text("def f():\n    import structsvm_papk.one.b\n")
    (package / "one" / "b.py").write_text(
        "from typing import TYPE_CHECKING\nimport structsvm_papk.two\nif TYPE_CHECKING:\n"
        "    from structsvm_papk.upper import a\n"
    )
    faults = "\n".join(layers.faults(tmp_path))
    assert "structsvm_papk.one.b:4 imports structsvm_papk.upper.a: not downwards" in faults
    assert "structsvm_papk.one.b:2 imports structsvm_papk.two: the core's parts" in faults
    assert "circle: " in faults and "'other' is missing" in faults
    assert "upper.a:2" not in faults


def test_imports_run_downwards_only_and_in_no_circle_and_the_layers_are_printed(capsys):
    status, shown = layers.main(ROOT), capsys.readouterr().out
    assert "estimators" in shown and status == 0, shown


def test_the_figure_in_contributing_is_that_of_the_imports():
    """Where it is not, `python tools/layers.py --figure` prints the right one."""
    assert f"```text\n{layers.figure(ROOT)}\n```" in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.slow
def test_a_solve_and_a_fit_run_through_few_files():
    script = ROOT / "tools" / "trace.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    solve, fit = (int(n) for n in re.findall(r": (\d+) files", done.stdout))
    # what is small and said once (thresholds, rounding, results) is a file of its own, and so is
    # each storage; a fit by its defaults asks folds for curves and pairs, by metrics
    assert solve <= 19 and fit <= 40
