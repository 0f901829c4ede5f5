"""What describes the package to others says the same as `pyproject.toml`."""

import re
import tomllib
from pathlib import Path

import pytest

from structsvm_papk import __version__

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve()
ROOT = next(folder for folder in ROOT.parents if (folder / "pyproject.toml").exists())
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"

if not RECIPE.exists():
    pytest.skip("the recipe is not here", allow_module_level=True)


def test_the_conda_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = RECIPE.read_text().partition("  run:\n")[2].partition("\ntests:")[0]
    recipe = dict(re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", run, re.MULTILINE))
    wanted = dict(
        re.fullmatch(r"([\w-]+)(>=[\d.]+)", each).groups() for each in project["dependencies"]
    )
    assert recipe == wanted


def test_versions_agree():
    lines = {"packaging/conda/recipe.yaml": '  version: "{}"', "CITATION.cff": "version: {}"}
    for file, line in lines.items():
        assert line.format(__version__) in (ROOT / file).read_text().splitlines()
