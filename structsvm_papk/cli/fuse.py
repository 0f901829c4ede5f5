"""``fuse``: the lists of several retrievers or recommenders, put into one by learned weights."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import load_model, save_model, weights_of
from structsvm_papk.fusion import storing
from structsvm_papk.fusion.comparing import validated
from structsvm_papk.fusion.engines import NAMES
from structsvm_papk.fusion.held_out import Settings
from structsvm_papk.fusion.joining import Joined, join
from structsvm_papk.fusion.page import fusion_page, sections
from structsvm_papk.fusion.report import FusionReport
from structsvm_papk.fusion.requests import Fusing, read_weights

_learning_option = partial(typer.Option, rich_help_panel="Learning")
_LISTS = "a run, CSV, TSV or Parquet"
_MODEL = "a model file (--weights writes the weights alone)"
_model_option = partial(typer.Option, rich_help_panel="Model")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How weights are learned and judged; the command has its fields as options."""

    k: Annotated[int, _learning_option("--k", help="Number of top places that count.")] = 10
    relevance_threshold: Annotated[
        float | None,
        _learning_option(
            help="Documents with at least this grade are relevant in training; by default training "
            "uses the grades.",
            metavar="GRADE",
        ),
    ] = None
    for_engine: Annotated[
        str | None,
        _learning_option(
            help="Compare the fusion rules of a search engine, or learn weights for one of them: "
            f"{', '.join(NAMES)}.",
            metavar="NAME",
        ),
    ] = None
    rank_constant: Annotated[
        float | None,
        _learning_option(
            help="Constant of the engine's rule of ranks, where it can be set; by default the "
            "engine's own.",
            metavar="C",
        ),
    ] = None
    ablate: Annotated[
        bool,
        _learning_option(
            "--ablate", help="Report what each run adds, and an interval of its weight."
        ),
    ] = False
    cv: Annotated[int, _learning_option(help="Number of folds of queries.")] = 5
    level: Annotated[float, _learning_option(help="Coverage of the intervals.")] = 0.95

    @property
    def settings(self) -> Settings:
        """The options as `fusion.cross_validate` takes them."""
        return Settings(
            k=self.k,
            threshold=self.relevance_threshold,
            engine=self.for_engine,
            n_folds=self.cv,
            level=self.level,
            rank_constant=self.rank_constant,
        )


@dataclass(frozen=True, kw_only=True)
class ReadingRuns:
    """How runs are read; the command has its fields as options."""

    depth: Annotated[
        int | None,
        options.reading_option(
            help="Use only the first N documents of each run, as many as the engine uses.",
            metavar="N",
        ),
    ] = None
    lower_is_better: Annotated[
        list[str] | None,
        options.reading_option(
            help="Name of a run whose scores are distances; repeat for more.", metavar="RUN"
        ),
    ] = None
    duplicates: Annotated[
        str,
        options.reading_option(
            help="A document twice in a list, as chunks of it: refuse, or take the best.",
            metavar="RULE",
        ),
    ] = "refuse"
    ignore_identical: Annotated[
        bool,
        options.reading_option(
            "--ignore-identical",
            help="Leave out documents with the id of their query, as BEIR does.",
        ),
    ] = False

    def joined(self, runs: dict[str, Path], qrels: Path | None = None, **more: Any) -> Joined:
        """Runs, and judgments, side by side."""
        return join(
            runs,
            qrels,
            on=storing.list_columns(next(iter(runs.values()))),
            lower_is_better=self.lower_is_better or (),
            duplicates=self.duplicates,
            ignore_identical=self.ignore_identical,
            **{"depth": self.depth} | more,
        )


@dataclass(frozen=True, kw_only=True)
class Written:
    """What is written; the command has its fields as options."""

    output: Annotated[
        Path | None,
        options.output_option(
            "--output",
            "-o",
            help="Write the fused lists: a run, or CSV, TSV or Parquet by the ending of the name.",
            metavar="FILE",
        ),
    ] = None
    top: Annotated[
        int,
        options.output_option(
            help="Number of documents written for each query.", metavar="N", min=1
        ),
    ] = 1000
    weights: Annotated[
        Path | None, options.output_option(help="Write the weights here, as JSON.", metavar="FILE")
    ] = None
    request: Annotated[
        bool,
        options.output_option(
            "--request",
            help="With --for-engine: print the request for the engine, with the weights in it.",
        ),
    ] = False
    html: options.Html = None
    as_json: options.Json = False


def fuse(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Runs, or tables of query (user), document (item) and score: FILE, or name=FILE.",
            metavar="RUN",
        ),
    ],
    qrels: Annotated[
        Path | None,
        _learning_option(
            help="Judgments: query 0 document grade, or a table with a column grade.",
            metavar="FILE",
        ),
    ] = None,
    learning: Learning,
    label_gain: options.GradesOfLabels = None,
    reading: ReadingRuns,
    model: Annotated[
        Path | None,
        _model_option(
            "--model",
            help="Model file: written with --qrels, read without. Also reads weights of an engine.",
            metavar="FILE",
        ),
    ] = None,
    method: Annotated[
        str | None,
        _model_option(
            help=f"Fuse without judgments: {', '.join(storing.METHODS)}.", metavar="NAME"
        ),
    ] = None,
    written: Written,
) -> None:
    """Combine the ranked lists of several retrievers or recommenders.

    With --qrels, learns a weight for each run, and compares the result with each run, RRF and
    CombSUM by cross-validation over queries. Without, combines the RUNs by --model or --method and
    writes them to --output.
    """
    given = storing.named_runs(runs)
    if qrels is not None:
        if method is not None:
            raise InputError("--method needs no judgments: leave out --qrels")
        _learn(given, qrels, label_gain, learning, reading, model, written)
        return
    learned_only = {
        "label-gain": label_gain,
        "weights": written.weights,
        "html": written.html,
        "for-engine": learning.for_engine,
        "request": written.request or None,
    }
    for name, value in learned_only.items():
        if value is not None:
            raise InputError(f"--{name} needs learned weights: give --qrels as well")
    _combine(given, reading, model, method, written)


def _combine(
    runs: dict[str, Path],
    reading: ReadingRuns,
    model: Path | None,
    method: str | None,
    written: Written,
) -> None:
    """Fuse runs by the weights of a file, or by a method that has none, and write them."""
    output = written.output
    if (model is None) == (method is None):
        raise InputError(
            "give --qrels FILE to learn weights, --model FILE to use some, or --method NAME "
            "without judgments"
        )
    if output is None:
        raise InputError("give --output FILE for the fused lists")
    check_outputs([model, *runs.values()], [(output, _LISTS)])
    content: dict[str, Any] = {"output": str(output)}
    if method is not None:
        check_choice("--method", method, storing.METHODS)
        joined = reading.joined(runs)
        _warn_of(joined.remarks)
        scores = storing.METHODS[method](joined.frame)
        content["n_rows"] = storing.write_fused(output, joined, scores, written.top)
        content["method"] = method
    else:
        assert model is not None
        fusing = Fusing.of(read_weights(model) or load_model(model))
        content["n_rows"] = _write_fused(output, written.top, fusing, runs, reading)
        content["model"] = str(model)
    said = f"{content['n_rows']} rows written to {output}"
    console.answer(written.as_json, content, console.note, said)


def _learn(
    runs: dict[str, Path], qrels: Path, label_gain: Any, learning: Learning, reading: ReadingRuns,
    model: Path | None, written: Written,
) -> None:  # fmt: skip
    """Learn weights of runs, say what they are worth, and write what is wanted."""
    output = written.output
    if learning.for_engine is None:
        if learning.rank_constant is not None:
            raise InputError("--rank-constant needs --for-engine NAME")
        if written.request:
            raise InputError("--request needs --for-engine NAME")
    elif model is not None:
        raise InputError("the weights of an engine are written by --weights, not by --model")
    files = [(model, _MODEL), (output, _LISTS), (written.weights, "JSON"), (written.html, "HTML")]
    check_outputs([qrels, *runs.values()], files)
    settings = learning.settings
    with console.bar("reading") as update:

        def say(text: str) -> None:
            update(description=text)

        joined = reading.joined(runs, qrels, label_gain=label_gain)
        report = validated(joined, settings, learning.ablate, say)
    for used in joined.used:
        console.note(used)
    _warn_of(report.remarks)
    trained = report.ranker.to_model()
    to_send = report.recommended.engine_weights
    if model is not None:
        save_model(model, trained)
        console.note(f"model written to {model}")
    if written.weights is not None:
        if to_send is not None:
            to_send.save(written.weights)
        else:
            text = json.dumps(weights_of(trained), indent=2) + "\n"
            write_atomically(written.weights, text.encode())
        console.note(f"weights written to {written.weights}")
    if output is not None:
        fusing = Fusing.of(to_send or trained)
        n_rows = _write_fused(output, written.top, fusing, runs, reading, report.remarks)
        console.note(f"{n_rows} rows written to {output}")
    if written.html is not None:
        write_atomically(written.html, fusion_page(report).encode())
        console.note(f"page written to {written.html}")
    content = report.as_dict() | {"runs": {name: str(path) for name, path in runs.items()}}
    if written.request and to_send is not None:
        content["request"] = to_send.request()
    console.answer(written.as_json, content, _show, report, content.get("request"))
    if not report.ranker.result_.converged:
        raise typer.Exit(1)


def _write_fused(
    output: Path,
    top: int,
    fusing: Fusing,
    runs: dict[str, Path],
    reading: ReadingRuns,
    said: Sequence[str] = (),
) -> int:
    """Fuse runs by weights, write them, and return the number of rows.

    Remarks that were `said` of the same runs in training are not repeated.
    """
    runs = storing.matched(runs, fusing.names)
    if fusing.window is not None and reading.depth not in (None, fusing.window):
        raise InputError(
            f"--depth {reading.depth}: the weights are for a window of {fusing.window}"
        )
    joined = reading.joined(runs, depth=fusing.window or reading.depth)
    _warn_of(joined.remarks, said)
    scores = fusing.fused(joined.scores.to_numpy(), joined.query, joined.place)
    return storing.write_fused(output, joined, scores, top)


def _warn_of(remarks: Sequence[str], said: Sequence[str] = ()) -> None:
    for remark in remarks:
        if remark not in said:
            console.warn(remark)


def _show(report: FusionReport, request: str | None) -> None:
    for section in sections(report):
        console.print_section(section)
    console.print_text(report.basis)
    console.print_text(report.advice)
    if request is not None:
        console.write_data(f"\n{request}\n")
