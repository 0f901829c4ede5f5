"""NDCG against the number of judged lists: a panel for documents, one for recommendations."""

import numpy as np

from benchmarks.common.markdown import grouped

SHOWN = {  # method -> colour, line
    "the default": ("#b3202c", "-"),
    "logistic regression": ("#1b5e9b", "-"),
    "CombSUM": ("#3a9d5d", "--"),
    "RRF": ("#555555", "--"),
    "best single run": ("#b58900", ":"),
    "LambdaRank, 7 leaves": ("#7a4fb5", "-."),
}
NAMES = {"the default": "structsvm_papk", "LambdaRank, 7 leaves": "LambdaRank"}
PANELS = {  # title -> what is judged, which data sets
    "TREC Deep Learning, six runs: NDCG@10": ("queries", lambda name: " to " in name),
    "three recommender sets, nine runs: NDCG@20": ("users", lambda name: "TREC" not in name),
}


def figure(answer):
    """Two panels, one above the other, so that a narrow screen can show them."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6, 7.6), layout="constrained", facecolor="white")
    for axes, (title, (judged, belongs)) in zip(drawn.subplots(2, 1), PANELS.items(), strict=True):
        panel(axes, [row for row in answer["rows"] if belongs(row["set"])])
        axes.set_title(title, loc="left", fontsize=12)
        axes.set_xlabel(f"judged {judged} to learn from", fontsize=11)
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=11, frameon=False)
    return drawn


def panel(axes, rows):
    """Means over the data sets that have a size; bands of two standard errors over draws."""
    names = {row["set"] for row in rows}
    floor = min(row["ndcg"] for row in rows if not row["method"].startswith("LambdaRank"))
    of_all = {max(row["size"] for row in own) for _, own in grouped(rows, lambda row: row["set"])}
    differing = of_all if len(of_all) > 1 else set()
    curves = {}
    for method in SHOWN:
        own = [row for row in rows if row["method"] == method]
        curves[method] = curve([_largest_as_one(row, rows) for row in own], len(names))
    for method, (sizes, means, errors) in curves.items():
        colour, line = SHOWN[method]
        width = 2.6 if method == "the default" else 1.7
        name = NAMES.get(method, method)
        axes.plot(sizes, means, line, color=colour, lw=width, marker="o", ms=4, label=name)
        axes.fill_between(sizes, means - 2 * errors, means + 2 * errors, color=colour, alpha=0.15)
    top = max((means + 2 * errors).max() for _, means, errors in curves.values())
    lowest = min(means[0] for _, means, _ in curves.values())
    bottom = max(lowest, floor - 0.35 * (top - floor))
    axes.set_ylim(bottom, top + 0.08 * (top - bottom))
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{n:,}" if n not in differing else "all" for n in sizes])
    axes.minorticks_off()
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.25)
    if lowest < bottom:
        note = f"LambdaRank begins at {lowest:.2f}, below the axis"
        axes.text(0.02, 0.04, note, transform=axes.transAxes, fontsize=11, color="#7a4fb5",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip


def _largest_as_one(row, rows):
    """All lists of a year are one size, though years differ by a few."""
    largest = max(each["size"] for each in rows if each["set"] == row["set"])
    of_all = max(each["size"] for each in rows)
    return row | {"size": of_all if row["size"] == largest else row["size"]}


def curve(rows, n_sets):
    """Sizes, means over sets, and standard errors of the means."""
    points = [
        (size, own)
        for size, own in sorted(grouped(rows, lambda row: row["size"]), key=lambda each: each[0])
        if len(own) == n_sets
    ]
    sizes = np.array([size for size, _ in points])
    means = np.array([np.mean([row["ndcg"] for row in own]) for _, own in points])
    errors = [np.sqrt(np.sum([row["band"] ** 2 for row in own])) / n_sets for _, own in points]
    return sizes, means, np.array(errors)
