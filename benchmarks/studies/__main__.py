"""The commands of `benchmarks.studies`."""

import math
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import console
from structsvm_papk.errors import InputError

app = console.app_of("Studies of bounds, degenerate optima, metrics and re-ranking.")
Names = list[str] | None


@app.command()
def coverage(
    draws: Annotated[int, typer.Option(help="Draws of each setting.")] = 1000,
    size: Annotated[
        list[int] | None, typer.Option(help="Number of negatives; repeat. 200, 2000, 20000.")
    ] = None,
    law: Annotated[Names, typer.Option(help="Only this pair of laws; repeat.")] = None,
    rho: Annotated[float, typer.Option(help="Error probability, at most 1/2.")] = 0.05,
    directions: Annotated[
        int, typer.Option(help="Random linear scorers for the uniform bounds.")
    ] = 100,
    seed: console.Seed = 0,
    checkpoint: console.Folder = None,
    as_json: console.Json = False,
):
    """Coverage and width of every interval on laws whose risk is known; minutes at 1,000 draws.

    Exit status 1 where a guaranteed bound failed more often than its level allows.
    """
    from benchmarks.studies import coverage as study

    with console.progress() as step:
        rows = study.coverage(
            draws, size or study.SIZES, law, rho, directions, seed,
            progress=lambda row: step(f"{row.law}, {row.method}"),
            cells=console.cells(checkpoint, "coverage"),
        )  # fmt: skip
    given = [row.as_dict() for row in rows]
    console.answer(as_json, {"rows": given}, _show_coverage, given)
    if any(row.violated for row in rows):
        raise typer.Exit(1)


def _show_coverage(rows):
    console.print_rows("Coverage", rows)
    broken = [f"{row['method']} ({row['law']})" for row in rows if row["violated"]]
    none = "No guaranteed bound failed more often than its level."
    print(f"Violated guarantees: {'; '.join(broken)}" if broken else none)


@app.command()
def stability(
    users: Annotated[
        list[int] | None, typer.Option(help="Training users; repeat. 100, 1000, 5000, 20000.")
    ] = None,
    alpha: Annotated[list[float] | None, typer.Option(help="Repeat. 0.01, 0.1, 1.")] = None,
    surrogate: Annotated[Names, typer.Option(help="Repeat. By default avg.")] = None,
    as_json: console.Json = False,
):
    """The risk of new users beside its bound by stability; two minutes."""
    from benchmarks.studies import stability as study

    settings = users or (100, 1000, 5000, 20000), alpha or (0.01, 0.1, 1.0), surrogate or ("avg",)
    rows = list(study.rows(*settings))
    console.answer(as_json, {"rows": rows}, console.print_rows, "Risk of new users", rows)


@app.command()
def degenerate(
    users: Annotated[int, typer.Option(help="Training users, and held-out users.")] = 600,
    items: Annotated[int, typer.Option(help="Items of each user.")] = 70,
    features: Annotated[int, typer.Option(help="Features.")] = 90,
    k: console.K = 8,
    seeds: Annotated[int, typer.Option(help="Number of data sets in each regime.")] = 10,
    regime: Annotated[
        Names, typer.Option(help="gaussian, heavy_tails or mislabelled; repeat. By default all.")
    ] = None,
    method: Annotated[
        Names, typer.Option(help="Only this one beside ClippedRamp; repeat. By default all.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    checkpoint: console.Folder = None,
    as_json: console.Json = False,
):
    """What ClippedRamp gains where every convex optimum is zero; about a minute a data set."""
    from benchmarks.studies import degenerate as study

    regimes = regime or list(study.REGIMES)
    with console.progress(max(seeds, 0) * len(regimes)) as step:
        result = study.run(
            range(seeds), regimes, method or tuple(study.METHODS),
            study.Sizes(users, users, items, features, k), jobs,
            lambda outcomes: step(outcomes[0].regime), console.cells(checkpoint, "degenerate"),
        )  # fmt: skip
    rows = sorted(map(vars, result.summary()), key=lambda row: (row["regime"], -row["mean"]))
    title = f"Test pAp@{k} gain, and how far {study.OURS} is ahead, with 95% intervals"
    console.answer(as_json, result.as_dict(), console.print_rows, title, rows)


@app.command()
def distinguishability(
    by: Annotated[
        str, typer.Option(help="What grows: users (lists of --items) or items (one list).")
    ] = "users",
    replicates: Annotated[int, typer.Option(help="Independent repetitions.", min=1)] = 200,
    largest: Annotated[
        int | None, typer.Option(help="Largest number; by default 2000 users or 20000 items.")
    ] = None,
    items: Annotated[int, typer.Option(help="Items of each user.", min=2)] = 100,
    noise: Annotated[
        tuple[float, float], typer.Option(help="Noise of the better and of the worse ranker.")
    ] = (1.0, 1.15),
    positive_rate: Annotated[float, typer.Option(help="Share of relevant items.")] = 0.1,
    metric: Annotated[Names, typer.Option(help="Only this metric; repeat.")] = None,
    seed: console.Seed = 0,
    plot: console.Plot = None,
    checkpoint: console.Folder = None,
    as_json: console.Json = False,
):
    """From how few users a metric tells two close rankers apart.

    Share of repetitions in which the better ranker stays ahead from N on (Def. 3 of Wang et al.,
    2013), for NDCG with several discounts and for pAp@k, precision@k, AUC and AP.
    """
    from benchmarks.studies import distinguishability as study

    if not 0 < positive_rate < 1:
        raise InputError(f"--positive-rate {positive_rate:g} must lie between 0 and 1")
    result = study.run(
        by, n_replicates=replicates, largest=largest, n_items=items, noise=noise,
        positive_rate=positive_rate, chosen=metric or None, seed=seed,
        cells=console.cells(checkpoint, "distinguishability"),
    )  # fmt: skip
    console.save_plot(plot, lambda: study.figure(result))
    console.answer(as_json, result.as_dict(), _show_distinguishability, result)


def _show_distinguishability(result):
    """Metrics that need the fewest first."""
    last = result.sizes.size - 2
    shown = sorted({0, *(round(part * last) for part in (0.25, 0.5, 0.75, 1))})
    needed, rows = result.needed(), []
    for name in sorted(needed, key=lambda name: (needed[name] or math.inf, name)):
        shares = {f"N = {result.sizes[i]}": result.share[name][i] for i in shown}
        rows.append({"metric": name, "N for 95%": needed[name]} | shares)
    console.print_rows(f"Better ranker ahead from N {result.by} on ({result.description})", rows)


Effort = Annotated[str, typer.Option(help="quick, normal (a minute) or thorough.")]


@app.command()
def ndcg(seed: console.Seed = 0, effort: Effort = "normal", as_json: console.Json = False):
    """What NDCG of one list tends to as the list grows, for three scorers, and its theorems."""
    from benchmarks.studies import ndcg as study

    _check_effort(effort)
    limits = study.limits()
    checks = _checked(study.CLAIMS, seed, effort)
    tables = {"What NDCG of one list tends to": limits, "NDCG of long lists": checks}
    console.answer(as_json, {"limits": limits, "checks": checks}, _show, tables)


@app.command()
def targets(seed: console.Seed = 0, effort: Effort = "normal", as_json: console.Json = False):
    """Which orders minimise the expected loss of a list whose labels are random."""
    from benchmarks.studies import targets as study

    _check_effort(effort)
    checks = _checked(study.CLAIMS, seed, effort)
    sampled = study.sampled()
    tables = {"What losses aim at": checks, "What sampled negatives estimate": sampled}
    console.answer(as_json, {"checks": checks, "sampled": sampled}, _show, tables)


def _check_effort(effort):
    from benchmarks.studies.claims import EFFORTS

    if effort not in EFFORTS:
        raise InputError(f"--effort {effort}: choose {', '.join(EFFORTS)}")


def _checked(claims, seed, effort):
    checks = []
    with console.progress(len(claims)) as step:
        for claim in claims:
            step(claim.id)
            checks.append(claim.check(seed, effort))
    return checks


def _show(tables):
    for title, rows in tables.items():
        long = ("claim", "source", "hypothesis", "counterexample")  # in the JSON
        console.print_rows(title, rows, without=long)


@app.command()
def rerank(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder or zip with train.tsv and test.tsv: user and item ids from 0, by tabs."
        ),
    ],
    results: Annotated[
        Path, typer.Option(help="Folder of lists and fits; a new run goes on from it.")
    ],
    k: console.K = 20,
    candidates: Annotated[int, typer.Option(help="Items of a user that re-rankers see.")] = 200,
    train_users: Annotated[
        int, typer.Option(help="Users, drawn at random, on whose lists re-rankers are trained.")
    ] = 2000,
    draws: Annotated[int, typer.Option(help="How often they are drawn, with other seeds.")] = 10,
    standardised: Annotated[
        bool,
        typer.Option(
            "--standardised/--raw", help="Features with mean 0 and variance 1 within every user."
        ),
    ] = True,
    method: Annotated[
        Names, typer.Option(help="Only this re-ranker beside PAPKRanker; repeat.")
    ] = None,
    as_json: console.Json = False,
):
    """NDCG, recall and pAp at k of recommenders, and of re-rankers over several ones' scores."""
    from benchmarks.studies.rerank import study

    plan = study.Plan(k, candidates, train_users, draws, standardised)
    with console.progress() as step:
        answer = study.run(folder, results, plan, tuple(method or ()), step)
    for remark in answer["remarks"]:
        console.note(remark, "yellow")
    console.answer(as_json, answer, _show_rerank, answer)


def _show_rerank(answer):
    """Best first; what is published stands among what was measured."""
    rows = sorted(answer["rows"] + answer["published"], key=lambda row: -row["ndcg"])
    names = ("n_test_users", "n_items", "candidates", "candidate_recall", "draws", "train_users")
    sizes = ", ".join(f"{name} {answer[name]}" for name in names)
    console.print_rows(
        f"{answer['dataset'] or 'interactions'}: k {answer['k']}, {sizes}",
        rows,
        ("settings", "certificates"),
    )


@app.command()
def synthetic_interactions(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    users: Annotated[int, typer.Option(help="Number of users.")] = 300,
    items: Annotated[int, typer.Option(help="Number of items.")] = 200,
    seed: console.Seed = 0,
):
    """Write invented interactions to try rerank on."""
    from benchmarks.studies.rerank.data import write_synthetic

    print(write_synthetic(folder, users, items, seed=seed))


if __name__ == "__main__":
    console.main(app, "benchmarks studies")
