import json

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run, run_json
from helpers.functions import lines
from helpers.marks import slow
from structsvm_papk import metrics
from structsvm_papk.files.model import Model, save_model

pytestmark = pytest.mark.portable

N_USERS, N = 12, 15
CERTIFICATE = {"objective": 1.0, "lower_bound": 1.0, "gap": 0.0, "status": "optimal",
               "converged": True, "n_iter": 1}  # fmt: skip


def rows(**changed):
    rng = np.random.default_rng(7)
    users = np.repeat([f"u{u:02d}" for u in range(N_USERS)], N)
    x = rng.normal(size=(users.size, 2))
    label = (x[:, 0] + 0.5 * rng.normal(size=users.size) > 0.6).astype(int)
    label[::N], label[1::N] = 1, 0
    noise = np.random.default_rng(0).normal(size=(2, users.size))
    table = {
        "user_id": users, "item_id": np.tile(np.arange(N), N_USERS),
        "tier": np.where(users < "u04", "[new]", "old"), "label": label,
        "score": np.round(x[:, 0] + 0.6 * noise[0], 6), "x1": x[:, 0], "x2": x[:, 1],
        "other": np.round(x[:, 0] + 3.0 * noise[1], 6),
    }  # fmt: skip
    return pd.DataFrame(table | changed)


def write(path, table):
    write_as = table.to_parquet if path.suffix == ".parquet" else table.to_csv
    write_as(path, index=False)
    return path


def found(capsys, *arguments):
    status, answer = run_json(capsys, "evaluate", *arguments)
    assert status == 0
    return answer


def library(table, names, score="score", **how):
    return metrics.evaluate(names, table[score], table["label"], table["user_id"], **how)


def test_numbers_are_those_of_the_library(tmp_path, capsys):
    table = rows()
    path = write(tmp_path / "a.csv", table)
    second = write(tmp_path / "b.csv", table.assign(score=table["other"]))
    command = [path, "-m", "pap@3, auc"]
    answer = found(capsys, *command)
    expected, worse = (library(table, ["pap@3", "auc"], name) for name in ("score", "other"))
    values = [row["value"] for row in answer["metrics"]]
    assert values == [expected.mean("pap@3"), expected.mean("auc")]
    interval = metrics.interval(expected, "auc")
    ends = [answer["metrics"][1][end] for end in ("lower", "upper")]
    assert ends == [interval.lower, interval.upper]
    assert found(capsys, path, "-m", "pap@3", "-m", "auc")["metrics"] == answer["metrics"]
    assert answer["metrics"][0]["n_used"] == N_USERS
    assert answer["metrics"][0]["conventions"]["ties"] == "loss"
    compared = metrics.compare(expected, worse, n_resamples=2000)
    for more in (["--compare", second], ["--compare", "other"]):
        comparison = found(capsys, *command, *more)["comparison"]
        assert [c["p_value"] for c in comparison] == [c.p_value for c in compared]
        assert [c["difference"] for c in comparison] == [c.difference for c in compared]
    users = tmp_path / "users.csv"
    more = "--per-user", users
    assert run("evaluate", *command, "--compare", second, *more) == 0
    shown = capsys.readouterr()
    assert "Comparison: paired permutation test" in shown.out
    np.testing.assert_allclose(pd.read_csv(users)["auc"], expected["auc"])


def test_models_score_tables_and_svmlight(tmp_path, capsys):
    table, model = rows(), tmp_path / "model"
    path = write(tmp_path / "data.csv", table[["user_id", "label", "x1", "x2", "tier"]])
    save_model(model, Model(lines([1.0, 0.2]), 3, "ts", 1.0, "cutting_plane", CERTIFICATE,
                            feature_names=("x1", "x2")))  # fmt: skip
    table["score"] = table["x1"] + 0.2 * table["x2"]
    expected = library(table, ["auc"]).mean("auc")
    common = ("-m", "auc", "--group", "user_id", "--ignore", "tier", "--interval", "none")
    for arguments in ((model, path), (path, "--model", model, "--compare", model)):
        answer = found(capsys, *arguments, *common)
        assert answer["metrics"][0]["value"] == pytest.approx(expected, abs=1e-12)
    assert answer["comparison"][0]["p_value"] == 1.0
    path = tmp_path / "data.txt"
    path.write_text("3 qid:1 1:2.0\n0 qid:1 1:1.0\n2 qid:2 1:0.5\n1 qid:2 1:0.1\n")
    function = lines([-9.0, 1.0, 7.0])  # of the features 0 to 2, of which the file has one
    save_model(model, Model(function, 1, "avg", 1.0, "cutting_plane", CERTIFICATE, first_index=0,
                            relevance_threshold=2.0))  # fmt: skip
    assert found(capsys, model, path, "-m", "auc")["metrics"][0]["value"] == 1.0
    assert "needs a table" in refused(capsys, "evaluate", model, path, "--item", "tier")


IDS = ["007", "7", "1e3", "1000", "12345678901234567890", "12345678901234567891", "nan"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_users_and_items_stay_apart_and_keep_their_names(tmp_path, capsys, suffix):
    """Each user has one list of two items that would be one if they were read as numbers."""
    columns = {
        "user_id": np.repeat(IDS, 2), "item_id": np.tile(["01", "1"], len(IDS)),
        "label": np.tile([1, 0], len(IDS)), "score": np.arange(2.0 * len(IDS)),
    }  # fmt: skip
    path, users = write(tmp_path / f"a{suffix}", pd.DataFrame(columns)), tmp_path / "users.csv"
    answer = found(capsys, path, "-m", "auc", "--per-user", users)
    assert answer["metrics"][0]["n_used"] == len(IDS)
    written = pd.read_csv(users, dtype=str, keep_default_na=False)
    assert written["user"].tolist() == sorted(IDS)
    table = rows(user_id=np.repeat(np.arange(N_USERS), N))  # numbers in Parquet, text in CSV
    plain, typed = write(tmp_path / "b.csv", table), write(tmp_path / "b.parquet", table)
    for one, two in ((plain, typed), (typed, plain)):
        comparison = found(capsys, one, "--compare", two, "-m", "auc")["comparison"]
        assert comparison[0]["n_users"] == N_USERS


def test_scores_beyond_double_precision_do_not_tie(tmp_path, capsys):
    """Nanoseconds as scores: read as floats, a positive and a negative would tie."""
    path = tmp_path / "a.csv"
    path.write_text(f"user,label,score\n1,1,{2**60 + 1}\n1,0,{2**60}\n")
    assert "different ones would tie" in refused(capsys, "evaluate", path)
    path.write_text(f"user,label,score\n1,1,{2**60 + 1}\n1,0,0.5\n")
    assert found(capsys, path, "-m", "auc")["metrics"][0]["value"] == 1


def test_columns_of_scores_one_list_and_rules(tmp_path, capsys):
    path, whole = tmp_path / "r.csv", tmp_path / "w.csv"
    path.write_text("user,item,label,a,b\n1,p,0,2,1\n1,q,1,1,2\n2,p,1,2,1\n2,q,1,1,2\n")
    one = [path, "--score", "a", "-m", "pap@1", "--preset", "rectools", "--interval", "kl"]
    (row,) = found(capsys, *one)["metrics"]
    assert (row["value"], row["by_rule"]["few_negatives"]) == (0.5, 1)
    compared = found(capsys, *one, "--compare", "b")["comparison"][0]
    assert compared["difference"] == -0.5
    whole.write_text("score,label\n3,1\n2,0\n1,1\n")
    assert found(capsys, whole, "--one-list", "-m", "auc")["metrics"][0]["value"] == 0.5


GOOD = "user,label,score\n1,0,1\n1,1,2\n"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", (), "the first line must name the columns, but it is empty"),
        ("user,label\n1,0\n1,1\n", (), "no column 'score' for the score (--score"),
        ("who,label,score\n1,0,1\n1,1,2\n", (), "name it with --group, or give --one-list"),
        (GOOD, ("--metrics", ","), "--metrics names no metric"),
        (GOOD, ("--group", "who"), "no column 'who' for the user; it has 'user', 'label'"),
        (GOOD, ("--per-user", "/no/such/x.csv"), "cannot write"),
        (GOOD, ("a.csv", "--model", "m"), "give the model once"),
        (GOOD, ("--label-gain", "E=1"), "--label-gain gives grades to labels of --qrels FILE"),
        (GOOD, ("--compare", "nothing"), "no such file, and no such column in"),
        (GOOD, ("--compare", "score"), "is the column that is evaluated"),
        (GOOD, ("--compare", "labels.csv"), "user 1 has 1 positives"),
        (None, ("--level", "95"), "Invalid value for '--level'"),
        (None, ("-m", "mapp"), "there is no metric 'mapp'"),
        (None, ("--gains", "cubic"), "is not known; choose one of linear, exponential"),
        (None, (), "cannot read"),
    ],
)
def test_wrong_input_has_a_reason(tmp_path, monkeypatch, capsys, content, arguments, message):
    """Options are judged before a file is read."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("labels.csv", f"{GOOD}1,1,3\n"),):
        (tmp_path / name).write_text(text)
    if content is not None:
        (tmp_path / "a.csv").write_text(content)
    assert run("evaluate", "a.csv", *arguments) == 2
    assert message in capsys.readouterr().err


def test_without_a_usable_user_the_status_is_1(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows())
    assert run("evaluate", path, "-m", "pap@40", "--json") == 1
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["metrics"]
    assert row["value"] is None and row["n_used"] == 0
    assert f"pap@40: none of {N_USERS} users can be used ({N_USERS} with few negatives)" in err
    assert run("evaluate", path, "-m", "pap@40,auc") == 0
    assert f"pap@40: none of {N_USERS} users can be used" in capsys.readouterr().err


def test_all_tied_scores_are_called_so(tmp_path, capsys):
    constant = np.repeat(np.arange(N_USERS), N)
    other = constant.copy()
    other[0] += 1
    for scores, more, tied in (
        (0 * constant, ["--one-list"], True), (constant, [], True), (other, [], False),
    ):  # fmt: skip
        path = write(tmp_path / "a.csv", rows(score=scores))
        assert run("evaluate", path, "-m", "auc", *more) == 0
        assert ("equal, so nothing is ranked" in capsys.readouterr().err) == tied


# --- all relevant pairs, runs, and what a nightly job asks ----------------------------------------

RUN = "a Q0 d1 1 2 t\na Q0 d2 2 1 t\nb Q0 d9 1 2 t\nb Q0 d1 2 2 t\nc Q0 d1 1 5 t\n"
QRELS = "a 0 d2 3\na 0 d7 1\nb 0 d1 1\nb 0 d9 0\ne 0 d1 1\n"


def judged(tmp_path, run=RUN, qrels=QRELS):
    paths = tmp_path / "our.run", tmp_path / "test.qrels"
    for path, text in zip(paths, (run, qrels), strict=True):
        path.write_text(text)
    return paths


def test_a_run_is_evaluated_as_trec_eval_does(tmp_path, capsys):
    path, qrels = judged(tmp_path)
    answer = found(capsys, path, "--qrels", qrels, "-m", "rr,recall@2")
    assert [row["value"] for row in answer["metrics"]] == [0.5, 0.75]  # d9 before d1, as text
    assert answer["metrics"][0]["conventions"]["ties"] == "trec_eval"
    assert answer["relevant_items"] == "all 3 known, 1 of them in no list"
    complete = found(
        capsys, path, "--qrels", qrels, "-m", "rr,recall@2", "--population", "judged"
    )  # fmt: skip
    assert [row["value"] for row in complete["metrics"]] == pytest.approx([1 / 3, 0.5])
    values = tmp_path / "values.csv"
    assert run("evaluate", path, "--qrels", qrels, "--per-user", values) == 0
    assert pd.read_csv(values).columns[0] == "query"
    shown = capsys.readouterr()
    assert "1 with relevant items and no list: left out (--population judged" in shown.err
    assert "1 lists without a judgment: left out" in shown.err
    assert "ndcg@10" in shown.out and "recall@10" in shown.out
    assert "--qrels FILE" in refused(capsys, "evaluate", path)


@pytest.mark.parametrize("suffix", [".csv", slow(".parquet")])
def test_a_table_beside_all_relevant_pairs(tmp_path, capsys, suffix):
    """The table's own labels know the candidates, a file of pairs knows the rest."""
    table = rows(user_id=np.repeat(np.arange(N_USERS), N))
    path = write(tmp_path / f"a{suffix}", table)
    pairs = table.loc[table.label == 1, ["user_id", "item_id"]]
    outside = pd.DataFrame({"user_id": np.arange(N_USERS), "item_id": 100})
    pairs = pd.concat([pairs, outside], ignore_index=True)
    names = ["ndcg@5", "recall@5", "pap@3"]
    expected = metrics.evaluate_frame(table, names, item="item_id", relevant=pairs)
    command = path, "-m", ",".join(names)
    for file in (tmp_path / "p.csv", tmp_path / "p.parquet"):
        answer = found(capsys, *command, "--qrels", write(file, pairs))
        values = [row["value"] for row in answer["metrics"]]
        assert values == pytest.approx([expected.mean(name) for name in names], abs=1e-15)
    judgments = tmp_path / "p.qrels"
    judgments.write_text("".join(f"{u} 0 {i} 1\n" for u, i in pairs.itertuples(index=False)))
    for data in (path, write(tmp_path / f"b{suffix}", table.drop(columns="label"))):
        answer = found(capsys, data, *command[1:], "--qrels", judgments)
        assert [row["value"] for row in answer["metrics"]] == pytest.approx(values, abs=1e-15)
    candidates = found(capsys, *command)
    assert candidates["relevant_items"] == "of the candidates"
    assert candidates["metrics"][1]["value"] > values[1]


def test_pairs_may_have_the_names_of_the_lists(tmp_path, capsys):
    table = rows()
    pairs = table.loc[table.label == 1, ["user_id", "item_id"]]
    names = {"user_id": "customer", "item_id": "article"}
    usual = write(tmp_path / "a.csv", table), write(tmp_path / "p.csv", pairs)
    named = [tmp_path / "b.csv", tmp_path / "q.csv"]
    for path, frame in zip(named, (table, pairs), strict=True):
        write(path, frame.rename(columns=names))
    expected = found(capsys, usual[0], "--qrels", usual[1])
    options = "--group", "customer", "--item", "article"
    assert found(capsys, named[0], "--qrels", named[1], *options)["metrics"] == expected["metrics"]
    said = refused(capsys, "evaluate", usual[0], "--qrels", named[1])
    assert "no column 'user' (or group, " in said and "it has 'customer', 'article'" in said


@pytest.mark.parametrize(
    ("qrels", "arguments", "message"),
    [
        (QRELS, ("--one-list",), "--qrels needs users and items"),
        (QRELS, ("-m", "auc"), "auc needs complete lists"),
        ("z 0 d1 1\n", (), "no user counts"),
        ("a 0 d1\n", (), "line 1: expected 'query 0 document grade'"),
        (QRELS, ("--population", "some"), "--population some is not known"),
        (QRELS, ("--population", "raise"), "user e has relevant items but no list"),
        (QRELS, ("--require-better",), "--require-better needs --compare"),
        (QRELS, ("--compare", "no.run"), "cannot read"),
        (QRELS, ("--compare", "other.run"), "not have lists of the same users, or of the same q"),
    ],
)
def test_what_does_not_fit_a_run(tmp_path, capsys, qrels, arguments, message):
    path, qrels = judged(tmp_path, qrels=qrels)
    (tmp_path / "other.run").write_text("a Q0 d1 1 2 t\n")
    arguments = [tmp_path / one if one == "other.run" else one for one in arguments]
    assert message in refused(capsys, "evaluate", path, "--qrels", qrels, *arguments)
    said = refused(capsys, "evaluate", path, tmp_path / "other.run", "--qrels", qrels)
    assert "our.run is a run, not a model" in said
    assert "--compare" in said


@pytest.mark.parametrize(
    ("line", "reason"),
    [("a Q0 d1 1 nan t", "line 1: the score 'nan'"), ("a Q0 d1 1 2", "6 fields"), ("", "no lines")],
)
def test_a_run_whose_first_line_is_none_says_why(tmp_path, capsys, line, reason):
    _, qrels = judged(tmp_path)
    (tmp_path / "a.run").write_text(line)
    said = " ".join(refused(capsys, "evaluate", tmp_path / "a.run", "--qrels", qrels).split())
    assert reason in said and "a.run" in said and "no run of TREC" in said


def test_require_better_decides_by_the_interval(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows(same=rows()["score"]))
    for ours, theirs, status in (("x1", "other", 0), ("other", "x1", 1), ("score", "same", 1)):
        command = path, "--score", ours, "--compare", theirs, "--require-better", "-m", "auc,ap"
        assert run("evaluate", *command, "--json") == status
        answer = json.loads(capsys.readouterr().out)
        assert answer["better"] is (status == 0)
        assert (answer["comparison"][0]["lower"] > 0) is (status == 0)
        assert run("evaluate", *command) == status
        shown = capsys.readouterr()
        assert ("is not shown to be better than" in shown.err) is (status == 1)
        assert "auc" in shown.err


def test_few_users_are_not_shown_to_be_better(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows()[: 5 * N])
    command = path, "--compare", "other", "--require-better", "-m", "auc"
    assert run("evaluate", *command) == 1
    assert "no interval for so few lists, 5" in capsys.readouterr().err


# a table of PyTerrier: docid is a number inside of the index
PYTERRIER = """qid,docid,docno,rank,score,query
1,500,k1,0,9.5,red kite
1,501,k2,1,8.1,red kite
2,78,k4,0,4.4,blue tit
2,12,k1,1,3.3,blue tit
"""


@pytest.mark.parametrize("name", ["q.csv", "q.qrels"])
def test_documents_have_the_ids_of_the_judgments(tmp_path, capsys, name):
    pairs = [("1", "k1", 1), ("1", "k2", 0), ("2", "k1", 1), ("2", "k4", 0)]
    (tmp_path / "r.csv").write_text(PYTERRIER)
    lines = [f"{q} 0 {d} {g}" for q, d, g in pairs]
    if name == "q.csv":
        lines = ["qid,docno,label", *(f"{q},{d},{g}" for q, d, g in pairs)]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    answer = found(capsys, tmp_path / "r.csv", "--qrels", tmp_path / name, "-m", "ndcg@10,rr")
    assert [m["value"] for m in answer["metrics"]] == pytest.approx(
        [(1 + 1 / np.log2(3)) / 2, 0.75], abs=1e-12
    )
    assert run("evaluate", tmp_path / "r.csv", "--qrels", tmp_path / name, "-m", "rr") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "item 'docno'" in said
    assert "4 of 4 items in the lists were judged" in said
    read = "user 'qid', item 'docno', grade 'label', ignored none"
    assert (read if name == "q.csv" else "judgments of 4 documents for 2 queries") in said


def test_the_column_of_grades_is_named_or_refused(tmp_path, capsys):
    path, _ = judged(tmp_path)
    stars = write(tmp_path / "q.csv", pd.DataFrame(
        {"query": ["a", "a"], "document": ["d1", "d2"], "stars": [0, 3]}
    ))  # fmt: skip
    said = refused(capsys, "evaluate", path, "--qrels", stars)
    assert "which column is the grade?" in said and "'stars'" in said and "--label" in said
    answer = found(capsys, path, "--qrels", stars, "--label", "stars", "-m", "recall@1")
    assert answer["relevant_items"].startswith("all 1 known")


@pytest.mark.parametrize("group", ["user", "visitor_id"])
def test_the_only_other_id_is_the_item(tmp_path, capsys, group):
    (tmp_path / "r.csv").write_text(f"{group},hotel_id,score\n1,p,2\n1,q,1\n")
    (tmp_path / "q.csv").write_text(f"{group},hotel_id\n1,q\n")
    answer = found(
        capsys, tmp_path / "r.csv", "--qrels", tmp_path / "q.csv", "-m", "rr", "--group", group
    )
    assert answer["metrics"][0]["value"] == 0.5
