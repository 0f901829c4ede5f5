"""``fuse``: the lists of several retrievers or recommenders, put into one by learned weights."""

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.markup import escape

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import OUTPUT, WRITTEN, option
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import check_apart, check_writable, write_atomically
from structsvm_papk.files.model import Model, load_model, save_model
from structsvm_papk.fusion import storing
from structsvm_papk.fusion.comparing import validated
from structsvm_papk.fusion.held_out import Settings
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.page import fusion_page
from structsvm_papk.fusion.report import CHOSEN, FUSED, FusionReport

_LEARNING = partial(option, "Learning")
_BAR = 18  # characters of the largest weight


@dataclass(frozen=True)
class Learning:
    """What is learned, and how it is judged."""

    qrels: Path | None = _LEARNING(
        None, "Judgments: query 0 document grade, or a table with a column grade.", "FILE"
    )
    k: int = _LEARNING(10, "Places that count.", flags="--k")
    relevance_threshold: float = _LEARNING(
        1.0, "Documents with at least this grade are relevant in training.", "GRADE"
    )
    for_engine: bool = _LEARNING(
        False,
        "Weights for a search engine: of min-max scores, at least 0, with the sum 1.",
        flags="--for-engine",
    )
    ablate: bool = _LEARNING(
        False,
        "Say of each run what it adds, and between which ends its weight lies.",
        flags="--ablate",
    )
    cv: int = _LEARNING(5, "Folds of queries.")
    level: float = _LEARNING(0.95, "Coverage of the intervals.")
    random_state: int = _LEARNING(0, "Seed of folds and resampling.", flags="--seed")

    def settings(self) -> Settings:
        """As `cross_validate` takes them."""
        return Settings(
            k=self.k,
            threshold=self.relevance_threshold,
            for_engine=self.for_engine,
            n_folds=self.cv,
            level=self.level,
            n_resamples=2000,
            n_refits=200,
            seed=self.random_state,
        )


@dataclass(frozen=True)
class Applying:
    """What is ranked with the weights, and where that goes."""

    apply: list[str] | None = OUTPUT(
        None, "Fuse these runs of other queries, as RUN; by default the RUNs.", "RUN .."
    )
    output: Path | None = WRITTEN(
        None,
        "Write the fused lists: a run, or by its ending CSV, TSV, Parquet.",
        "FILE",
        flags="--output -o",
    )
    top: int = OUTPUT(1000, "Documents of each query that are written.", "N", min=1)


def fuse(
    *,
    runs: list[str] = options.argument(
        ...,
        "Runs, or tables of query (user), document (item) and score: FILE, or name=FILE.",
        "RUN",
    ),
    learning: Learning,
    applying: Applying,
    model: Path | None = option(
        "Model", None, "Written with --qrels, read without.", "FILE", flags="--model"
    ),
    weights: Path | None = WRITTEN(None, "Write the weights here, as JSON.", "FILE"),
    plot: Path | None = options.PLOT,
    html: Path | None = WRITTEN(None, "Write a page here; needs the extra 'report'.", "FILE"),
    as_json: bool = options.JSON,
) -> None:
    """The lists of several retrievers or recommenders, put into one by learned weights.

    With --qrels weights are learned, and cross-validated by query beside each run, RRF and CombSUM.
    Without, a --model fuses the RUNs into --output.
    """
    given = storing.named_runs(runs)
    to_apply = storing.named_runs(applying.apply) if applying.apply else given
    inputs = [*given.values(), *to_apply.values()]
    _check_paths(learning, applying, model, inputs, [weights, html])
    if learning.qrels is None:
        trained = _loaded(model, applying, {"weights": weights, "plot": plot, "html": html})
        n_rows = _apply(trained, given, applying)
        content = {"model": str(model), "output": str(applying.output), "n_rows": n_rows}
        console.answer(as_json, content, _say_written, content)
        return
    options.check_plot(plot)
    on = storing.list_columns(next(iter(given.values())))
    with console.bar("reading") as update:

        def say(text: str) -> None:
            update(description=text)

        joined = join(given, learning.qrels, on)
        report = validated(joined, learning.settings(), learning.ablate, say)
    for remark in report.remarks:
        console.warn(remark)
    trained = report.ranker.to_model()
    if model is not None:
        save_model(model, trained)
        console.note(f"model written to {model}")
    if weights is not None:
        values = storing.weights_file(trained, report.weights, report.for_engine)
        write_atomically(weights, (json.dumps(values, indent=2) + "\n").encode())
        console.note(f"weights written to {weights}")
    if applying.output is not None:
        n_rows = _apply(trained, to_apply, applying, said=report.remarks)
        console.note(f"{n_rows} rows written to {applying.output}")
    options.save_plot(plot, report.plot)
    if html is not None:
        write_atomically(html, fusion_page(report).encode())
        console.note(f"page written to {html}")
    content = report.as_dict() | {"runs": {name: str(path) for name, path in given.items()}}
    console.answer(as_json, content, _show, report)
    if not report.ranker.result_.converged:
        raise typer.Exit(1)


def _check_paths(
    learning: Learning, applying: Applying, model: Path | None, inputs: list[Path],
    written: Sequence[Path | None],
) -> None:  # fmt: skip
    """Refuse options that contradict each other, and files that would be overwritten."""
    if applying.apply and applying.output is None:
        raise InputError("--apply needs --output FILE, where the fused lists go")
    if applying.apply and learning.qrels is None:
        raise InputError("--apply is for --qrels; with --model alone give the runs as RUN")
    outputs = [path for path in (*written, applying.output) if path is not None]
    read = [path for path in (*inputs, learning.qrels) if path is not None]
    if learning.qrels is not None and model is not None:
        outputs.append(model)
        check_writable(model)
    check_apart(outputs, [path for path in read if path.exists()])


def _loaded(model: Path | None, applying: Applying, others: dict[str, Path | None]) -> Model:
    if model is None:
        raise InputError("give --qrels FILE to learn weights, or --model FILE to use some")
    if applying.output is None:
        raise InputError("with --model give --output FILE, where the fused lists go")
    for name, path in others.items():
        if path is not None:
            raise InputError(f"--{name} says something of learned weights: give --qrels, too")
    return load_model(model)


def _apply(
    model: Model, runs: dict[str, Path], applying: Applying, said: Sequence[str] = ()
) -> int:
    """Fuse runs with a model and write the result; returns its number of rows.

    Remarks that were `said` of the same runs in training are not repeated.
    """
    runs = storing.matched(runs, model)
    joined = join(runs, on=storing.list_columns(next(iter(runs.values()))))
    for remark in joined.remarks:
        if remark not in said:
            console.warn(remark)
    assert applying.output is not None
    return storing.write_fused(applying.output, storing.fused(model, joined), applying.top)


def _say_written(content: dict[str, Any]) -> None:
    console.note(f"{content['n_rows']} rows written to {content['output']}")


# --- what is printed ------------------------------------------------------------------------------


def _show(report: FusionReport) -> None:
    _show_rankings(report)
    _show_weights(report)
    if report.weights[0].verdict:
        _show_ablation(report)
    result = report.ranker.result_
    print(
        f"Weights to a relative gap of {result.gap:.1e} (alpha {result.alpha:.3g}, "
        f"{result.n_iter} iterations)."
    )
    _say(report.advice)


def _show_rankings(report: FusionReport) -> None:
    lists = report.nouns[0]
    level = f"{100 * report.level:g}%"
    rows: list[Sequence[str]] = []
    for ranking in report.rankings:
        name = escape(ranking.name)
        ahead = f"{ranking.ahead:+.4f}"
        if ranking.name == FUSED:
            name = f"[bold]{name}[/bold]"
            ahead = ""
        if ranking.name == CHOSEN:
            name += " *"
        rows.append(
            (
                name,
                f"{ranking.mean:.4f}",
                _ends(ranking.lower, ranking.upper),
                ahead,
                _ends(ranking.ahead_lower, ranking.ahead_upper, "+.4f"),
            )
        )
    _say(
        f"{report.metric} of {report.n_queries} judged {lists}, each ranked by weights that were "
        f"learned from the other folds ({report.n_folds}); ahead: fused less the other ranking, "
        "paired."
    )
    columns = ["ranking", f">{report.metric}", f">{level} interval", ">ahead", f">{level} interval"]
    console.print_table("", columns, rows, box=None, padding=(0, 1, 0, 0))
    print(f"* the best by the {lists} of the other folds\n")


def _show_weights(report: FusionReport) -> None:
    largest = max(abs(weight.share) for weight in report.weights) or 1.0
    n_relevant = max(report.n_relevant, 1)
    rows = []
    for weight in report.weights:
        cells = [escape(weight.name), f"{weight.share:+.3f}", _bar(weight.share / largest)]
        if not report.for_engine:
            cells.append(f"{weight.not_there:+.3g}")
        cells.append(f"{weight.n_missed / report.n_documents:.0%}")
        cells.append(f"{weight.n_relevant_missed / n_relevant:.0%}")
        rows.append(cells)
    unit = "standard deviation of a run's scores"
    members = report.nouns[1]
    absent = f" (not there: what is added for {members} that the run missed)"
    if report.for_engine:
        unit = "min-max score"
        absent = ""
    _say(
        f"Weights per {unit}, as shares{absent}; {members} that a run missed, of "
        f"{report.n_documents}, and relevant ones, of {report.n_relevant}."
    )
    columns = ["run", ">weight", "", ">not there", ">missed", ">relevant missed"]
    if report.for_engine:
        columns.remove(">not there")
    console.print_table("", columns, rows, box=None, padding=(0, 1, 0, 0))
    print()


def _show_ablation(report: FusionReport) -> None:
    level = f"{100 * report.level:g}%"
    rows = [
        (
            escape(weight.name),
            f"{weight.without:.4f}",
            f"{weight.gain:+.4f}",
            _ends(weight.gain_lower, weight.gain_upper, "+.4f"),
            _ends(weight.share_lower, weight.share_upper, "+.3f"),
            weight.verdict,
        )
        for weight in report.weights
    ]
    columns = ["run", ">without", ">adds", f">{level} interval", f">{level} of weight", "verdict"]
    _say(f"{report.metric} without each run, and what the run adds.")
    console.print_table("", columns, rows, box=None, padding=(0, 1, 0, 0))
    print()


def _say(text: str) -> None:
    print(textwrap.fill(text, 79))


def _ends(lower: float, upper: float, form: str = ".4f") -> str:
    return "" if math.isnan(lower) else f"{lower:{form}} {upper:{form}}"


def _bar(share: float) -> str:
    """A bar for a share of the largest weight, in a character that every terminal has."""
    return ("#" if share >= 0 else "-") * int(np.ceil(abs(share) * _BAR))
