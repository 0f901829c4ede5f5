"""Pages stay short enough to be read: words as `wc -w` counts them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = 1_500
LIMITS = {"README.md": 900, "CONTRIBUTING.md": 1_300, "docs/index.md": 350}
TOGETHER = 24_000  # README and all pages
RESULTS = 600  # a page of measurements; their numbers are in JSON
RESULTS_TOGETHER = 12_000

if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)


def words():
    """Number of words of README, CONTRIBUTING and each page, but the changelog and the proofs."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    names = {page.relative_to(ROOT).as_posix(): page for page in pages}
    return {
        name: len(page.read_text(encoding="utf-8").split())
        for name, page in names.items()
        if name not in ("docs/changelog.md", "docs/math/proofs.md")
        and not name.startswith("docs/assets/")
    }


def test_no_page_is_longer_than_its_limit():
    limits = {name: LIMITS.get(name, PAGE) for name in words()}
    longer = {name: n for name, n in words().items() if n > limits[name]}
    assert not longer, {name: f"{n} words, limit {limits[name]}" for name, n in longer.items()}


def test_readme_and_pages_together_are_within_their_limit():
    together = {name: n for name, n in words().items() if name != "CONTRIBUTING.md"}
    longest = sorted(together, key=together.get)[-5:]
    assert sum(together.values()) <= TOGETHER, f"{sum(together.values())}; longest: {longest}"


def test_pages_of_results_are_short():
    pages = (ROOT / "benchmarks" / "results").glob("*.md")
    counts = {page.name: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert {name: n for name, n in counts.items() if n > RESULTS} == {}
    assert sum(counts.values()) <= RESULTS_TOGETHER


def test_every_table_of_results_is_named_on_the_page_of_benchmarks():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    tables = (ROOT / "benchmarks" / "results").glob("*.md")
    assert [table.name for table in tables if f"`{table.name}`" not in page] == []
