"""``fuse``: the lists of several retrievers or recommenders, put into one by learned weights."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs, save_plot
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
from structsvm_papk.fusion.requests import read_weights
from structsvm_papk.fusion.serving import Fusing

_learning_option = partial(typer.Option, rich_help_panel="Learning")
_LISTS = "a run, CSV, TSV or Parquet"
_MODEL = "a model file (--weights writes the weights alone)"
_model_option = partial(typer.Option, rich_help_panel="Model")


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
    k: Annotated[int, _learning_option("--k", help="Number of top places that count.")] = 10,
    relevance_threshold: Annotated[
        float | None,
        _learning_option(
            help="Documents with at least this grade are relevant in training; by default training "
            "uses the grades.",
            metavar="GRADE",
        ),
    ] = None,
    for_engine: Annotated[
        str | None,
        _learning_option(
            help="Compare the fusion rules of a search engine, or learn weights for one of them: "
            f"{', '.join(NAMES)}.",
            metavar="NAME",
        ),
    ] = None,
    rank_constant: Annotated[
        float | None,
        _learning_option(
            help="Constant of the engine's rule of ranks, where it can be set; by default the "
            "engine's own.",
            metavar="C",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        _learning_option(
            help="Use only the first N documents of each run, as many as the engine uses.",
            metavar="N",
        ),
    ] = None,
    ablate: Annotated[
        bool,
        _learning_option(
            "--ablate", help="Report what each run adds, and an interval of its weight."
        ),
    ] = False,
    cv: Annotated[int, _learning_option(help="Number of folds of queries.")] = 5,
    level: Annotated[float, _learning_option(help="Coverage of the intervals.")] = 0.95,
    label_gain: options.GradesOfLabels = None,
    lower_is_better: Annotated[
        list[str] | None,
        options.reading_option(
            help="Name of a run whose scores are distances; repeat for more.", metavar="RUN"
        ),
    ] = None,
    duplicates: Annotated[
        str,
        options.reading_option(
            parser=options.one_of("refuse", "best"),
            help="A document twice in a list, as chunks of it: refuse, or take the best.",
            metavar="RULE",
        ),
    ] = "refuse",
    ignore_identical: Annotated[
        bool,
        options.reading_option(
            "--ignore-identical",
            help="Leave out documents with the id of their query, as BEIR does.",
        ),
    ] = False,
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
    output: Annotated[
        Path | None,
        options.output_option(
            "--output",
            "-o",
            help="Write the fused lists: a run, or CSV, TSV or Parquet by the ending of the name.",
            metavar="FILE",
        ),
    ] = None,
    top: Annotated[
        int,
        options.output_option(
            help="Number of documents written for each query.", metavar="N", min=1
        ),
    ] = 1000,
    weights: Annotated[
        Path | None, options.output_option(help="Write the weights here, as JSON.", metavar="FILE")
    ] = None,
    request: Annotated[
        bool,
        options.output_option(
            "--request",
            help="With --for-engine: print the request for the engine, with the weights in it.",
        ),
    ] = False,
    plot: options.Plot = None,
    html: Annotated[
        Path | None,
        options.output_option(
            help="Write an HTML page here; needs the extra 'report'.", metavar="FILE"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Combine the ranked lists of several retrievers or recommenders.

    With --qrels, learns a weight for each run, and compares the result with each run, RRF and
    CombSUM by cross-validation over queries. Without, combines the RUNs by --model or --method and
    writes them to --output.
    """
    given = storing.named_runs(runs)
    taking = {
        "lower_is_better": lower_is_better or (),
        "duplicates": duplicates,
        "ignore_identical": ignore_identical,
    }
    if qrels is None:
        learned_only = {
            "label-gain": label_gain,
            "weights": weights,
            "plot": plot,
            "html": html,
            "for-engine": for_engine,
            "request": request or None,
        }
        for name, value in learned_only.items():
            if value is not None:
                raise InputError(f"--{name} needs learned weights: give --qrels as well")
        if (model is None) == (method is None):
            raise InputError(
                "give --qrels FILE to learn weights, --model FILE to use some, or --method NAME "
                "without judgments"
            )
        if output is None:
            raise InputError("give --output FILE for the fused lists")
        check_outputs([model, *given.values()], [(output, _LISTS)])
        if model is None:
            check_choice("--method", str(method), storing.METHODS)
            joined = _joined(given, depth, taking)
            scores = storing.METHODS[str(method)](joined.frame)
            n_rows = storing.write_fused(output, joined, scores, top)
        else:
            fusing = Fusing.of(read_weights(model) or load_model(model))
            n_rows = _write_fused(output, top, fusing, given, depth, taking)
        content = {"output": str(output), "n_rows": n_rows}
        content["method" if model is None else "model"] = str(method or model)
        console.answer(as_json, content, _say_written, content)
        return
    if method is not None:
        raise InputError("--method needs no judgments: leave out --qrels")
    if rank_constant is not None and for_engine is None:
        raise InputError("--rank-constant needs --for-engine NAME")
    if request and for_engine is None:
        raise InputError("--request needs --for-engine NAME")
    if model is not None and for_engine is not None:
        raise InputError("the weights of an engine are written by --weights, not by --model")
    files = [(model, _MODEL), (output, _LISTS), (weights, "JSON"), (html, "HTML")]
    check_outputs([qrels, *given.values()], files, plot=plot)
    settings = Settings(
        k=k,
        threshold=relevance_threshold,
        engine=for_engine,
        n_folds=cv,
        level=level,
        rank_constant=rank_constant,
    )
    on = storing.list_columns(next(iter(given.values())))
    with console.bar("reading") as update:

        def say(text: str) -> None:
            update(description=text)

        joined = join(given, qrels, on, depth, label_gain=label_gain, **taking)
        report = validated(joined, settings, ablate, say)
    for used in joined.used:
        console.note(used)
    for remark in report.remarks:
        console.warn(remark)
    trained = report.ranker.to_model()
    to_send = report.recommended.engine_weights
    if model is not None:
        save_model(model, trained)
        console.note(f"model written to {model}")
    if weights is not None:
        if to_send is not None:
            to_send.save(weights)
        else:
            write_atomically(weights, (json.dumps(weights_of(trained), indent=2) + "\n").encode())
        console.note(f"weights written to {weights}")
    if output is not None:
        fusing = Fusing.of(to_send or trained)
        n_rows = _write_fused(output, top, fusing, given, depth, taking, report.remarks)
        console.note(f"{n_rows} rows written to {output}")
    save_plot(plot, report.plot)
    if html is not None:
        write_atomically(html, fusion_page(report).encode())
        console.note(f"page written to {html}")
    content = report.as_dict() | {"runs": {name: str(path) for name, path in given.items()}}
    if request and to_send is not None:
        content["request"] = to_send.request()
    console.answer(as_json, content, _show, report, content.get("request"))
    if not report.ranker.result_.converged:
        raise typer.Exit(1)


def _write_fused(
    output: Path, top: int, fusing: Fusing, runs: dict[str, Path], depth: int | None,
    taking: dict[str, Any], said: Sequence[str] = (),
) -> int:  # fmt: skip
    """Fuse runs by weights, write them, and return the number of rows.

    Remarks that were `said` of the same runs in training are not repeated.
    """
    runs = storing.matched(runs, fusing.names)
    if fusing.window is not None and depth not in (None, fusing.window):
        raise InputError(f"--depth {depth}: the weights are for a window of {fusing.window}")
    joined = _joined(runs, fusing.window or depth, taking, said)
    scores = fusing.fused(joined.scores.to_numpy(), joined.query, joined.place)
    return storing.write_fused(output, joined, scores, top)


def _joined(
    runs: dict[str, Path], depth: int | None, taking: dict[str, Any], said: Sequence[str] = ()
) -> Joined:
    joined = join(runs, on=storing.list_columns(next(iter(runs.values()))), depth=depth, **taking)
    for remark in joined.remarks:
        if remark not in said:
            console.warn(remark)
    return joined


def _say_written(content: dict[str, Any]) -> None:
    console.note(f"{content['n_rows']} rows written to {content['output']}")


def _show(report: FusionReport, request: str | None) -> None:
    for section in sections(report):
        console.print_section(section)
    console.print_text(report.basis)
    console.print_text(report.advice)
    if request is not None:
        console.write_data(f"\n{request}\n")
