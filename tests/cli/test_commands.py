import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import structsvm_papk
from helpers.commands import commands, refused, run, run_json
from helpers.marks import slow
from helpers.problems import degenerate_lists
from helpers.sources import write_csv
from structsvm_papk._version import commit
from structsvm_papk.cli import compare
from structsvm_papk.cli._shared import console
from structsvm_papk.files.model import load_model
from structsvm_papk.files.readers import read_table
from structsvm_papk.plots import figures as plots
from structsvm_papk.rankers import PAPKRanker

pytestmark = pytest.mark.portable


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same graded task as svmlight with qid, svmlight with .query, and CSV."""
    place = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3)).round(4)
    grades = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=240)), 0, 3).astype(int)
    users = np.repeat(np.arange(12), 20)
    for name, query in (("qid.txt", {"query_id": users}), ("side.txt", {})):
        dump_svmlight_file(X, grades, str(place / name), zero_based=False, **query)
    (place / "side.txt.query").write_text("20\n" * 12)
    # users are text there: of two digits, so that they are in the same order in every file
    write_csv(place / "rows.csv", X, grades, [f"{u:02d}" for u in users], "grade", "user")
    return place


PROBLEM = ["--k", "3", "--relevance-threshold", "2"]
CSV = ["--label", "grade", "--group", "user"]
MAIN = "from structsvm_papk.cli import main; sys.exit(main())"


def test_fit_says_which_columns_it_used_and_takes_no_id(files, tmp_path, capsys):
    rows = (files / "rows.csv").read_text().replace("grade,user,a,b,c", "grade,user_id,item_id,b,c")
    path, model = tmp_path / "rows.csv", tmp_path / "m"
    path.write_text(rows)
    for group in ([], ["--group", "user_id"]):
        assert run("fit", path, *PROBLEM, *CSV[:2], *group, "-o", model) == 0
        columns = "label 'grade', user 'user_id', item 'item_id', ignored none\n"
        assert f"{path}: 2 features ('b', 'c'), {columns}" in capsys.readouterr().err
        fitted = load_model(model)
        assert (fitted.feature_names, fitted.relevance_threshold) == (("b", "c"), 2)
    compare = ["compare", path, *PROBLEM, *CSV[:2], "--surrogate", "ts", "--passes", "10"]
    assert run(*compare, "--test", path) == 0
    assert capsys.readouterr().err.count("2 features ('b', 'c')") == 2
    assert run("fit", files / "qid.txt", *PROBLEM, "-o", model) == 0
    assert "3 features (indices 1 to 3, counted from 1)" in capsys.readouterr().err


def test_a_solver_without_a_certificate_ends_well_and_one_that_has_no_time_does_not(
    files, tmp_path, capsys
):
    fit = ["fit", files / "rows.csv", *PROBLEM, *CSV, "--curves", "none", "-o", tmp_path / "m"]
    assert run(*fit, "--solver", "subgradient") == 0
    assert "the method has no certificate" in capsys.readouterr().err
    assert run(*fit, "--tol", 1e-12, "--time-limit", 1e-9) == 1
    assert "Stopped at the time limit" in capsys.readouterr().err


def test_fit_shows_the_weights_that_move_scores_most(files, tmp_path, capsys):
    model = tmp_path / "m"
    fit = ["fit", files / "rows.csv", *PROBLEM, *CSV, "--curves", "none"]
    assert run(*fit, "--model", model) == 0
    shown = capsys.readouterr().out
    assert "spread of the score" in shown
    coef = load_model(model).function.slopes
    numbers = dict(re.findall(r"^([abc]) +\S+ +(\S+)", shown, re.M))
    assert {name: float(numbers[name]) for name in "abc"} == pytest.approx(
        dict(zip("abc", coef, strict=True)), rel=1e-3
    )
    by_number = ["fit", files / "qid.txt", *PROBLEM, "--model", model]
    assert run(*by_number) == 0
    assert len(re.findall(r"^[123] +-?\d", capsys.readouterr().out, re.M)) == 3
    told = run_json(capsys, *by_number)[1]
    assert "weight" not in told and told["curves"] is None


@pytest.fixture(scope="module")
def peaks(tmp_path_factory):
    """Rows that are liked where a is near 0, b low and c high, as CSV and as svmlight."""
    place = tmp_path_factory.mktemp("peaks")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3)).round(3)
    users = np.repeat(np.arange(20), 20)
    liked = X[:, 2] - X[:, 1] - 3 * abs(X[:, 0]) + 0.5 * rng.normal(size=400) > -1
    write_csv(place / "rows.csv", X, liked, [f"{u:02d}" for u in users], "label", "user")
    dump_svmlight_file(X, liked, str(place / "rows.txt"), query_id=users, zero_based=False)
    return place


def test_fit_shows_the_curves_that_move_scores_most(peaks, tmp_path, capsys):
    model = tmp_path / "m"
    fit = ["fit", peaks / "rows.csv", "--k", "3", "--curves", "8", "--model", model]
    assert run(*fit) == 0
    shown = capsys.readouterr().out
    assert "curves of 8 pieces" in " ".join(shown.split())
    rows = re.findall(r"^([abc]) +(\S+) +\S+ +(\S+) +(\S+) +- +(rises|falls|both) *$", shown, re.M)
    spread = [float(row[1]) for row in rows]
    assert {row[0] for row in rows} == set("abc") and spread == sorted(spread, reverse=True)
    assert {row[0]: row[4] for row in rows}["a"] == "both"
    table = read_table(peaks / "rows.csv")
    ranker = PAPKRanker(3, curves=8).fit(table.X, table.labels, groups=table.groups)
    curves = dict(zip("abc", ranker.curves_, strict=True))
    for name, *numbers, course in rows:
        values = curves[name].values
        expected = [curves[name].deviation, values.min(), values.max()]
        assert [float(number) for number in numbers] == pytest.approx(expected, rel=2e-3)
        assert course == "both" or (course == "rises") == (values[-1] > values[0])


def test_weights_of_at_least_0(peaks, tmp_path, capsys):
    rows, model = peaks / "rows.csv", tmp_path / "m"
    fit = ["fit", rows, "--k", "3", "--curves", "none", "--model", model, "--positive"]
    assert run(*fit, "--ignore", "a", "--ignore", "c") == 0  # of b low values are liked
    assert "without --positive" in capsys.readouterr().err
    compare = ["compare", rows, "--k", "3", "--surrogate", "avg", "--passes", "20"]
    _, signed = run_json(capsys, *compare, "--positive")
    _, free = run_json(capsys, *compare)
    assert signed["positive"] is True and free["positive"] is False
    for ours, other in zip(signed["runs"], free["runs"], strict=True):
        assert ours["objective"] > other["objective"]


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        ("rows.csv", ["--curves", "255"], "--curves 255: a column has at most 254 pieces"),
        ("rows.csv", ["--curves", "many"], "--curves many must be 'auto', None, or a number"),
        ("rows.csv", ["--monotonic", "d=1"], "has no such column; it has 'a', 'b', 'c'"),
        ("rows.txt", ["--monotonic", "0=1"], "has no such column; it has '1', '2', '3'"),
        ("rows.csv", ["--monotonic", "a"], "give NAME=1 (rising) or NAME=-1 (falling)"),
        ("rows.csv", ["--monotonic", "a=1", "--monotonic", "a=-1"], "names column 'a' twice"),
        ("rows.csv", ["--monotonic", "a=1", "--positive"], "monotonic_cst or positive"),
        ("rows.csv", ["--monotonic", "a=1", "--dask", "tcp://x:1"], "the lists in memory"),
        ("rows.csv", ["--pairs", "2", "--dask", "tcp://x:1"], "--pairs needs the lists in memory"),
        ("rows.csv", ["--pairs", "many"], "--pairs many must be 'auto', None, or a number"),
        ("rows.csv", ["--pairs", "2", "--positive"], "pairs or positive"),
        ("rows.txt", ["--pairs", "2"], "--pairs 2 needs a dense X"),
    ],
)
def test_wrong_curves_and_signs(peaks, tmp_path, capsys, data, options, reason):
    said = refused(capsys, "fit", peaks / data, "--k", "3", *options, "--model", tmp_path / "m")
    assert reason in said and said.count("\n") == 1


MOST_OPTIONS = {"fit": 25, "compare": 22, "evaluate": 21, "fuse": 23}


@pytest.mark.parametrize(("name", "most"), MOST_OPTIONS.items())
def test_options_stay_few_and_are_grouped_by_what_they_are_for(name, most):
    own = dict(commands())[name].params
    given = [each for each in own if each.param_type_name == "option" and each.name != "help"]
    assert len(given) <= most
    panels = list(dict.fromkeys(each.rich_help_panel for each in given))
    ends = [panel for panel in panels if panel in ("Output", "Solver", "Data larger than memory")]
    assert panels[len(panels) - len(ends) :] == ends and ends[0] == "Output"


def test_fit_draws_what_each_column_adds(files, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    model, picture = tmp_path / "m", tmp_path / "curves.svg"
    for data, names in [
        (["rows.csv", *CSV], "abc"),
        (["qid.txt"], ["column 1", "column 2", "column 3"]),
    ]:
        fit = ["fit", files / data[0], *PROBLEM, *data[1:], "--model", model, "--plot", picture]
        assert run(*fit) == 0
        assert f"plot written to {picture}" in capsys.readouterr().err
        drawn = picture.read_text()  # of every text there is a comment
        assert all(f"<!-- {name} -->" in drawn for name in [*names, "adds to the score"])
        assert "Grey bars: number of rows." in drawn.replace("\u00a0", " ")
    again = drawn, model.read_bytes()
    assert run(*fit) == 0 and again == (picture.read_text(), model.read_bytes())
    for other in ("curves.png", "curves.pdf"):
        assert run(*fit[:-1], tmp_path / other) == 0 and (tmp_path / other).stat().st_size > 5000
    model.unlink()
    capsys.readouterr()
    assert "must end in .png" in refused(capsys, *fit[:-1], "curves.jpg")
    assert "is an input of this command" in refused(capsys, *fit[:-1], files / "qid.txt")
    assert not model.exists()


def test_a_result_says_how_it_was_made(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    record = run_json(capsys, *BOUND)[1]["run"]
    assert record["command"] == ["structsvm-papk", *BOUND, "--json"]
    assert record["directory"] == str(tmp_path) and record["versions"]["numpy"] == np.__version__
    assert {"date", "python", "platform", "processors"} <= set(record)
    assert record["commit"] == commit()
    numbers = [np.float64(1), np.inf, (np.nan, np.int64(2)), np.float32(np.nan), np.True_]
    console.print_json({"a": numbers, "b": tmp_path, "c": "NaN"})
    printed = json.loads(capsys.readouterr().out)
    assert printed["a"] == [1.0, None, [None, 2], None, True]
    assert printed["b"] == str(tmp_path) and printed["c"] == "NaN"


IMPORTED = """
import sys, structsvm_papk
from structsvm_papk.cli import main
heavy = {"cvxpy", "matplotlib", "dask", "distributed"}
of_estimators = {"sklearn", "pandas", "scipy.stats", "pyarrow"}  # taken along by scikit-learn
for option in ("--version", "--help"):
    main([option])
    numerics = {"numpy", "scipy", "numba", "sklearn", "cvxpy", "pandas", "matplotlib"}
    assert not numerics & {*sys.modules}, (option, {*sys.modules})
from structsvm_papk.cli import bound, compare, diagnose, evaluate, predict
from structsvm_papk.plots import page, terms
assert not (heavy | of_estimators) & {*sys.modules}, {*sys.modules}
"""
OF_FIT = """
from structsvm_papk.cli import fit  # by the estimator, which needs scikit-learn
assert not heavy & {*sys.modules}, {*sys.modules}
"""


@pytest.mark.parametrize("check", [IMPORTED, slow(IMPORTED + OF_FIT)], ids=["all but fit", "fit"])
def test_commands_import_no_library_that_they_do_not_need(check):
    """Half a second, not two: a clock would depend on the machine, the modules do not."""
    shown = subprocess.run(
        [sys.executable, "-c", check], check=True, capture_output=True, text=True
    )
    assert shown.stdout.split()[0] == structsvm_papk.__version__


def test_compare_gives_every_solver_its_gap_to_the_best_bound(files, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    command = ["compare", files / "qid.txt", *PROBLEM, "--test", files / "side.txt"]
    command += ["--surrogate", "ts", "--surrogate", "avg", "--eta", "0.1", "--eta", "1"]
    command += ["--passes", "30"]
    status, told = run_json(capsys, *command, "--plot", tmp_path / "c.svg")
    problem = ["depth", "standardized", "curves", "positive", "missing"]
    assert status == 0 and list(told) == [*problem, "paper", "runs", "run"]
    assert [(r["surrogate"], r["solver"]) for r in told["runs"]] == [
        (surrogate, solver)
        for surrogate in ("ts", "avg")
        for solver in ("cutting_plane", "subgradient", "stochastic")
    ]
    certified, *descents = told["runs"][:3]
    assert certified["gap"] <= 1e-6
    for descent in descents:
        assert descent["data_passes"] == 30
        assert descent["lower_bound"] is None and descent["gap"] is None
        assert descent["best_bound"] == certified["lower_bound"]
    for one in told["runs"]:
        assert {"alpha", "seconds", "pap_at_k"} <= set(one)
        assert one["pap_at_k"]["train"] == pytest.approx(one["pap_at_k"]["test"])
    assert (tmp_path / "c.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.slow
def test_demo_draws_where_matplotlib_is_and_says_where_not(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "structsvm-papk-demo.png"
    assert run("demo", "--tol", "1e-3") == 0
    assert plots.has_matplotlib() == picture.exists()
    capsys.readouterr()
    monkeypatch.setattr("structsvm_papk.plots.figures.find_spec", lambda name: None)
    said = refused(capsys, "compare", files / "qid.txt", *PROBLEM, "--plot", tmp_path / "c.png")
    assert "pip install matplotlib" in said


def test_wrong_input_is_one_line_before_anything_is_written(files, tmp_path, capsys):
    data, model, wide = files / "qid.txt", tmp_path / "m", tmp_path / "wide.txt"
    wide.write_text("1 qid:1 4:1\n")
    assert run("fit", data, *PROBLEM, "-o", tmp_path / "fitted") == 0
    capsys.readouterr()
    fit, compare = ["fit", data, *PROBLEM, "-o", model], ["compare", data, *PROBLEM]
    diagnose = ["diagnose", data, *PROBLEM, "--users", "0"]
    for arguments, reason in [
        ([*fit, "--depth", "nan"], "depth must be a whole number of at least k=3, a share"),
        ([*compare, "--depth", "21"], "--depth 21 is above every list"),
        ([*diagnose, "--depth", "21"], "--depth 21 is above every list"),
        ([*fit, "--one-list", "--group", "user"], "--one-list and --group contradict each other"),
        (["fit", data, *PROBLEM], "Missing option '--model'"),
        (["fit", tmp_path / "absent", *PROBLEM, "-o", model], "No such file"),
        (["fit", tmp_path / "absent", *PROBLEM, "-o", tmp_path], "is a directory"),
        (["fit", data, *PROBLEM, "-o", tmp_path / "no" / "m"], "cannot write"),
        (["fit", files / "side.txt.query", *PROBLEM, "-o", model], "no row has a feature"),
        ([*compare, "--surrogate", "ramp"], "is not convex"),
        ([*compare, "--paper", "--depth", "3"], "--paper is depth k and columns as they are"),
        ([*compare, "--solver", "averaged", "--qp-solver", "piqp"], "solvers has none of them"),
        ([*compare, "--plot", "c.bmp"], "must end in .png"),
        ([*compare, "--plot", tmp_path / "no" / "c.png"], "cannot write"),
        ([*compare, "--test", tmp_path / "absent"], "No such file"),
        ([*compare, "--test", wide], "but 3 are expected"),
        (["diagnose", data], "Missing option '--k'"),
        ([*diagnose, "--surrogate", "ts_alg2"], "choose one of"),
        (["predict", tmp_path / "fitted", wide], "4 features"),
        (["predict", data, data], "is not a structsvm-papk model file"),
        (["fit", data, *PROBLEM, "--model", data], "is an input of this command"),
        (
            [*compare[:1], files / "rows.csv", *PROBLEM, *CSV[:2], "--group", "who"],
            "no column 'who'",
        ),
    ]:
        said = refused(capsys, *arguments)
        assert reason in said and said.count("\n") == 1
    assert not model.exists()
    status, told = run_json(capsys, "compare", "absent", "--k", "3")
    assert status == 2 and list(told) == ["error"]


def test_own_errors_show_no_traceback(files, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.delenv("STRUCTSVM_PAPK_TRACEBACK", raising=False)
    monkeypatch.setattr(compare, "run_all", broken)
    assert run("compare", files / "qid.txt", *PROBLEM) == 3
    assert "internal error: RuntimeError: boom" in capsys.readouterr().err
    monkeypatch.setenv("STRUCTSVM_PAPK_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="boom"):
        run("compare", files / "qid.txt", *PROBLEM)


def test_wrong_input_ends_a_process_of_its_own_without_a_traceback():
    command = [sys.executable, "-c", f"import sys; {MAIN}", "prdict", "--json"]
    wrong = subprocess.run(command, capture_output=True, text=True)
    assert wrong.returncode == 2 and "error" in json.loads(wrong.stdout)
    assert "Traceback" not in wrong.stderr and os.linesep in wrong.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--json"], [], ["--n-pos", "x", "--json"]])
def test_a_reader_that_has_gone_is_not_an_answer_of_1(words):
    """As behind ``| head``: 1 would say that the new model is no better."""
    gone, output = os.pipe()
    os.close(gone)
    command = [sys.executable, "-m", "structsvm_papk", *BOUND, *words]
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
    os.close(output)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_the_table_of_runs_is_whole_in_a_narrow_terminal(files, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    wide = ["compare", files / "qid.txt", "--k", "3", "--relevance-threshold", "3"]
    assert run(*wide, "--surrogate", "ts") == 0
    shown = capsys.readouterr()
    for word in ("ts", "cutting plane", "of 18)", "stochastic", "bound", "pAp@3 on train"):
        assert word in " ".join(shown.out.split())
    assert "…" not in shown.out
    assert max(len(line.rstrip()) for line in shown.out.splitlines()[1:]) <= 80
    assert re.search(r"training: \d+ of 12 users used; left out: \d+ without", shown.err)
    assert "\x1b" not in shown.out + shown.err


def test_interrupt_reports_what_there_is(files, monkeypatch, capsys):
    """Ctrl-C in the second run: it is reported as interrupted, and no third one starts."""
    started = []

    def watch(solver, surrogate):
        started.append(solver)

        def callback(progress):
            if len(started) == 2 and progress.iteration == 3:
                raise KeyboardInterrupt

        return callback

    monkeypatch.setattr(console, "live", lambda: contextlib.nullcontext(watch))
    status, told = run_json(capsys, "compare", files / "qid.txt", *PROBLEM, "--passes", "10")
    assert [one["status"] for one in told["runs"]] == ["converged", "interrupted"]
    assert started == ["cutting_plane", "subgradient"] and status == 1


BOUND = ("bound", "uniform", "--n-pos", "50", "--n-neg", "500", "--k", "20", "--n-features", "3")


@pytest.mark.slow
def test_results_that_nobody_could_read_are_no_success(files, tmp_path):
    """With standard output closed the work is done, files are written, and the status says so."""
    program = f"{sys.executable} -c 'import sys; {MAIN}'"
    model, scores = tmp_path / "m", tmp_path / "scores"
    for command in (f"fit {files}/qid.txt {' '.join(PROBLEM)} --model {model}", " ".join(BOUND)):
        line = f"{program} {command} >&-"
        done = subprocess.run(line, shell=True, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.endswith("Error: cannot write the output: standard output is closed\n")
        assert "Traceback" not in done.stderr
    line = f"{program} predict {model} {files}/qid.txt -o {scores} >&-"
    assert subprocess.run(line, shell=True, capture_output=True).returncode == 0
    assert load_model(model).n_features == 3 and len(pd.read_csv(scores)) == 240


def _links(path, link):
    """Other names of one file: by another path, a symbolic link and a hard one."""
    (link / "sub").mkdir(exist_ok=True)
    for name in ("soft", "hard"):
        (link / name).unlink(missing_ok=True)
    (link / "soft").symlink_to(path)
    os.link(path, link / "hard")
    return [path, link / "sub" / ".." / path.name, link / "soft", link / "hard"]


def test_an_input_is_known_by_any_name_and_nothing_is_written_twice(files, tmp_path, capsys):
    """Every output of every command is tried in `test_outputs`."""
    scored = tmp_path / "scored.csv"
    scored.write_text("user,label,score\n1,1,2\n1,0,1\n")
    before = scored.read_bytes()
    for name in _links(scored, tmp_path):
        for command in (["evaluate", scored], ["evaluate", "m", "d.csv", "--compare", scored]):
            assert "is an input of this" in refused(capsys, *command, "--html", name)
    assert scored.read_bytes() == before
    counts, side = tmp_path / "rows.txt.query", tmp_path / "rows.txt"
    side.write_text((files / "side.txt").read_text())
    counts.write_text((files / "side.txt.query").read_text())
    assert "is an input" in refused(capsys, "fit", side, *PROBLEM, "-o", counts)
    folder = tmp_path / "parts"
    folder.mkdir()
    np.save(folder / "X.npy", np.ones((2, 1)))
    for name in ("X.npy", "new.parquet"):
        assert "is an input" in refused(capsys, "fit", folder, "--k", "1", "-o", folder / name)
    twice = ["evaluate", scored, "--html", tmp_path / "out", "--per-user", tmp_path / "." / "out"]
    assert "would be written twice" in refused(capsys, *twice)
    fit = ["fit", files / "rows.csv", *PROBLEM, *CSV, "--checkpoint", tmp_path / "state"]
    assert "would be written twice" in refused(capsys, *fit, "-o", tmp_path / "state")


@pytest.fixture
def noisy(tmp_path):
    """Users whose optimum at depth k is zero, and who can be told apart by counting more.

    They are too few for folds, which may find curves that rank something.
    """
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(4), 75)
    X = rng.normal(size=(users.size, 3))
    relevant = X[:, 0] + rng.normal(size=users.size) > 1
    path = tmp_path / "noisy.csv"
    return write_csv(path, X[:, :2], relevant, users, group="user_id")


@pytest.mark.filterwarnings("default")
def test_warnings_of_python_look_like_those_of_commands(tmp_path, capsys):
    rows = pd.DataFrame({"user": 1, "label": [1, 0, 1, 0], "x": [4.0, 3.0, 2.0, 1.0]})
    rows["title"] = ["a", "b\nc", "d", "e"]
    rows.to_csv(tmp_path / "f.csv", index=False)
    fit = ["fit", tmp_path / "f.csv", "--k", "1", "--ignore", "title", "-o", tmp_path / "m"]
    assert run(*fit) == 0
    said = capsys.readouterr().err
    assert (
        said.startswith(f"warning: {tmp_path}") and "f.csv, line 3: a quoted cell goes on" in said
    )


def test_a_degenerate_fit_says_in_two_lines_what_repairs_it(noisy, tmp_path, capsys):
    fit = ["fit", noisy, "--k", "3", "--curves", "none", "-o", tmp_path / "m"]
    status, told = run_json(capsys, *fit, "--depth", "k")
    assert status == 0 and told["status"] == "degenerate" and "w = 0" in told["message"]
    assert told["objective"] == pytest.approx(1)
    assert run(*fit, "--depth", "k") == 0
    said = capsys.readouterr().err
    depth = re.search(r"degenerate: w = 0 .*, or take another surrogate\.\ntry (.*)\n", said)
    assert depth[1].split()[0] == "--depth"
    assert run("predict", tmp_path / "m", noisy, "-o", tmp_path / "s") == 0
    assert "warning: every score is 0" in capsys.readouterr().err
    assert run("evaluate", tmp_path / "m", noisy, "-m", "auc") == 0
    said = capsys.readouterr().err
    assert "warning: every score is 0" in said and "nothing is ranked" in said
    for more in (depth[1].split(), []):  # the default counts nine tenths of the negatives
        assert run(*fit, *more) == 0
        assert "degenerate:" not in capsys.readouterr().err
        assert not load_model(tmp_path / "m").function.is_zero
    assert run("predict", tmp_path / "m", noisy, "-o", tmp_path / "s") == 0
    assert "warning" not in capsys.readouterr().err


SAYING = """
import sys

class Say:
    def find_spec(self, name, path=None, target=None):
        print(name, flush=True)

sys.meta_path.insert(0, Say())
"""


@pytest.mark.recovery
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    "module",
    [
        *("structsvm_papk.cli.program", "typer.main", "numpy", "numba.core.types", "scipy.sparse"),
        *("structsvm_papk.propositions.search", "structsvm_papk.propositions.claims"),
    ],
)
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(module):
    """A command of minutes, stopped when it begins to import a module."""
    command = [sys.executable, "-c", SAYING + MAIN, "verify", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as started:
        assert module in (line.strip() for line in started.stdout)  # reads up to it
        started.send_signal(signal.SIGINT)
        out, said = started.communicate()
    assert (started.returncode, said) == (130, "Error: interrupted\n")
    assert json.loads(out.splitlines()[-1]) == {"error": "interrupted"}


def test_a_target_is_refused_under_its_own_name(capsys):
    for target in (2, 0, "nan"):
        said = refused(capsys, "bound", "sizes", target)
        assert "WIDTH must be a number above 0 and below 1" in said


# --- diagnose -------------------------------------------------------------------------------------


def test_zero_is_optimal_at_depth_k_and_from_which_depth_on_not(tmp_path, capsys):
    lists = degenerate_lists(n_users=6, n_pos=4, n_neg=9, n_features=2, seed=0)
    path = write_csv(tmp_path / "a.csv", lists.X, lists.y, lists.groups)
    command = ["diagnose", path, "--k", "2", "--k", "3", "--surrogate", "avg", "--surrogate", "ts"]
    assert run(*command, "--depth", "k") == 0
    shown = capsys.readouterr()
    assert shown.out.count("optimal") >= 3 and "clipped_ramp" in shown.err
    assert "for all lists" in shown.out  # of grades there are several lists a user
    _, told = run_json(capsys, *command, "--depth", "k")
    rows = told["diagnoses"]
    assert [(row["k"], row["zero_is_optimal"]) for row in rows] == [(2, True)] * 2 + [(3, True)] * 2
    assert rows[0]["users"]["degenerate"] == 1.0
    for one in (row["critical_depth"] for row in rows):
        assert re.search(f"{one['informative_from'] or 'none'} of {one['deepest']}", shown.out)
    _, deep = run_json(capsys, *command, "--depth", "9", "--users", "0")
    assert [row["zero_is_optimal"] for row in deep["diagnoses"]].count(True) < 4
