"""What the README and the manual show is what happens: code, printed text, commands, names.

Printed text is compared to the last digit. So pages print what is determined, whatever the machine:
an optimum solved tightly, the digits that its tolerance leaves, a gap as "below 1e-6".
"""

import contextlib
import io
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import sklearn
from matplotlib import pyplot

from structsvm_papk import __version__, cli
from structsvm_papk.surrogates import CONVEX

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = ["README.md", "docs/tutorial.md", "docs/scale.md"]
PAGES += [
    page
    for page in sorted((ROOT / "docs").glob("*/*.md"))
    if page.parent.name in ("howto", "reference") and "```" in page.read_text()
]
DEMO_ROW = re.compile(
    r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \| below 1e-6 \| ([\d.]+) \|$", re.MULTILINE
)

if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)


def blocks_of(page):
    """Code blocks of a page, each with the printed text that it is said to give, or None."""
    blocks = BLOCK.findall((ROOT / page).read_text())
    following = [*blocks[1:], ("", "")]
    return [
        (language, code, text if kind == "text" else None)
        for (language, code), (kind, text) in zip(blocks, following, strict=True)
        if language != "text"
    ]


def run(language, code, names):
    """Run a block as a reader would; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if language == "python":
            exec(compile(code, "block", "exec"), names)
        else:
            for line in code.replace("\\\n", " ").splitlines():
                if line.startswith("structsvm-papk "):
                    assert cli.main(shlex.split(line, comments=True)[1:]) in (0, None), line
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).name)
def test_page_runs_as_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("Agg")
    names = {"__name__": "page"}
    with sklearn.config_context():  # what a page switches on ends with it
        for language, code, expected in blocks_of(page):
            printed = run(language, code, names)
            if expected is not None:
                assert printed.split() == expected.split()  # to the last digit, on every machine
    pyplot.close("all")


def test_readme_commands_are_those_of_ci():
    ci = (ROOT / ".ci" / "run").read_text()
    for command in ("pip install . && structsvm-papk demo", "pip install '.[test]' && pytest"):
        assert command in (ROOT / "README.md").read_text()
        assert command in ci


def test_the_install_page_and_the_conda_recipe_say_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "install.md").read_text()
    extras = re.findall(r"^\| `(\w+)` \|", page.partition("| extra |")[2], re.MULTILINE)
    assert sorted(extras) == sorted(project["optional-dependencies"])
    names = [re.split("[<>=]", line)[0] for line in project["dependencies"]]
    rows = page.partition("| dependency |")[2]
    listed = re.findall(r"^\| ([a-z, -]+) \|", rows, re.MULTILINE)
    assert sorted(", ".join(listed).split(", ")) == sorted(names)
    recipe = ROOT / "packaging" / "conda" / "recipe.yaml"
    if not recipe.exists():
        pytest.skip("the recipe is not here")
    recipe, cited = recipe.read_text(), (ROOT / "CITATION.cff").read_text()
    run = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    needs = re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", run, re.MULTILINE)
    assert sorted(map("".join, needs)) == sorted(project["dependencies"])
    assert f'  version: "{__version__}"' in recipe.splitlines()
    assert f"version: {__version__}" in cited.splitlines()


def test_the_demo_gives_the_table_of_the_install_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = json.loads(run("bash", "structsvm-papk demo --json\n", {}))["runs"]
    rows = DEMO_ROW.findall((ROOT / "docs" / "install.md").read_text())
    assert [row[0] for row in rows] == list(CONVEX)
    for name, objective, bound, descent in rows:
        certified, *descents = [one for one in runs if one["surrogate"] == name]
        assert certified["gap"] < 1e-6
        best = min(one["objective"] for one in descents)
        values = (certified["objective"], certified["lower_bound"], best)
        for value, shown in zip(values, (objective, bound, descent), strict=True):
            assert f"{value:.{len(shown) - 2}f}" == shown  # as many digits as the page has
