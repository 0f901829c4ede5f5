"""The picture of the home page: how well rankers rank, from the results of the study ``rerank``.

At build time it is drawn for light and for dark pages. ``python docs/_site/quality.py`` draws
docs/assets/ranking-quality.png, for the README.
"""

import io
import json
from pathlib import Path

from matplotlib import pyplot as plt
from mkdocs.structure.files import File

_ROOT = Path(__file__).parents[2]
_OWN = "PAPKRanker"  # names of the package's own methods begin so
_COLOURS = {"light": ("#263238", "#78909c", "#00796b"), "dark": ("#e3e7ea", "#90a4ae", "#4db6ac")}


def on_files(files, config):
    """Add the picture for light and for dark pages."""
    for scheme in _COLOURS:
        name = f"assets/ranking-quality-{scheme}.svg"
        files.append(File.generated(config, name, content=picture(scheme, "svg")))
    return files


def picture(scheme, form):
    """Re-rankers and the best recommender; bars are paired intervals against the first."""
    results = json.loads((_ROOT / "benchmarks/results/rerank.json").read_text())["gowalla"]
    recommenders = [row for row in results["rows"] if row["kind"] == "recommender"]
    best = max(recommenders, key=lambda row: row["ndcg"])
    best = best | {"name": f"best recommender ({best['name']})"}
    rows = [row for row in results["rows"] if row["kind"] != "recommender"] + [best]
    rows.sort(key=lambda row: row["ndcg"])
    text, other, own = _COLOURS[scheme]
    colours = {"text.color": text, "xtick.color": text, "ytick.color": text}
    with plt.rc_context({"font.size": 11, "svg.hashsalt": "quality", **colours}):
        figure, ax = plt.subplots(figsize=(5.6, 0.36 * len(rows) + 0.9), layout="constrained")
        for place, row in enumerate(rows):
            half = (row["upper"] - row["lower"]) / 2 if row["lower"] is not None else None
            colour = own if row["name"].startswith(_OWN) else other
            ax.errorbar(row["ndcg"], place, xerr=half, fmt="o", ms=8, capsize=4, color=colour)
            ax.annotate(f"{row['ndcg']:.4f}", (row["ndcg"], place), (0, 8), ha="center",
                        textcoords="offset points", fontsize=8.5)  # fmt: skip
        ax.axvline(rows[-1]["ndcg"], color=own, lw=1, ls=":")
        ax.set_yticks(range(len(rows)), [row["name"] for row in rows])
        ax.set_ylim(-0.5, len(rows) - 0.2)
        ax.margins(x=0.1)
        ax.set_title(f"NDCG@{results['k']}, {results['dataset'].title()}", loc="left", fontsize=11)
        ax.grid(axis="x", alpha=0.25)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.locator_params(axis="x", nbins=5)
        content = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None  # the same bytes at every build
        figure.savefig(content, format=form, transparent=form == "svg", dpi=150, metadata=metadata)
        plt.close(figure)
    return content.getvalue()


if __name__ == "__main__":
    (_ROOT / "docs" / "assets" / "ranking-quality.png").write_bytes(picture("light", "png"))
