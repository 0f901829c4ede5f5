"""What the README and the manual show is what happens: code, printed text, commands, names."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from matplotlib import pyplot

from structsvm_papk import cli

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/scale.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]
BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)


def blocks_of(page):
    """Code blocks of a page, each with the printed text that it is said to give, or None."""
    found = BLOCK.findall((ROOT / page).read_text())
    following = [*found[1:], ("", "")]
    return [
        (language, code, text if kind == "text" else None)
        for (language, code), (kind, text) in zip(found, following, strict=True)
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


def assert_same_text(printed, expected):
    """Words agree, and numbers nearly: the last digits depend on the machine's BLAS."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", expected).split()
    found, wanted = ([float(n) for n in NUMBER.findall(text)] for text in (printed, expected))
    for a, b in zip(found, wanted, strict=True):
        assert a == pytest.approx(b, rel=0.02, abs=0.002) or max(abs(a), abs(b)) < 1e-5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).name)
def test_page_runs_as_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("Agg")
    names = {"__name__": "page"}
    for language, code, expected in blocks_of(page):
        printed = run(language, code, names)
        if expected is not None:
            assert_same_text(printed, expected)
    pyplot.close("all")


def test_readme_commands_are_those_of_ci():
    ci = (ROOT / ".ci" / "run").read_text()
    for command in ("pip install . && structsvm-papk demo", "pip install '.[test]' && pytest"):
        assert command in (ROOT / "README.md").read_text()
        assert command in ci
