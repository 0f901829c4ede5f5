import csv
import gzip
import json

import numpy as np
import pytest

from structsvm_papk import metrics
from structsvm_papk.cli import main
from structsvm_papk.cli._shared import scores as score_files
from structsvm_papk.files.model import Model, save_model

pytestmark = pytest.mark.portable

N_USERS, N = 12, 15


def rows(seed=0, noise=0.6):
    rng = np.random.default_rng(7)
    users = np.repeat([f"u{u:02d}" for u in range(N_USERS)], N)
    x = rng.normal(size=(users.size, 2))
    label = (x[:, 0] + 0.5 * rng.normal(size=users.size) > 0.6).astype(int)
    label[::N], label[1::N] = 1, 0
    score = x[:, 0] + noise * np.random.default_rng(seed).normal(size=users.size)
    tier = np.where(users < "u04", "[new]", "old")
    return {
        "user_id": users, "item_id": np.tile(np.arange(N), N_USERS), "tier": tier,
        "label": label, "score": np.round(score, 6), "x1": x[:, 0], "x2": x[:, 1],
    }  # fmt: skip


def write(path, table, names=("user_id", "item_id", "tier", "label", "score")):
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(names)
        writer.writerows(zip(*(table[name].tolist() for name in names), strict=True))
    return path


def told(capsys, *arguments, status=0):
    assert main(["evaluate", *map(str, arguments)]) == status
    out, err = capsys.readouterr()
    return out if status == 0 else err


def test_json_holds_the_numbers_of_the_library(tmp_path, capsys):
    table = rows()
    path = write(tmp_path / "a.csv", table)
    found = json.loads(told(capsys, path, "-m", "pap@3, auc", "--by", "tier", "--json"))
    expected = metrics.evaluate(["pap@3", "auc"], table["score"], table["label"], table["user_id"])
    assert [row["value"] for row in found["metrics"]] == [
        expected.mean("pap@3"),
        expected.mean("auc"),
    ]
    interval = metrics.interval(expected, "auc")
    assert [found["metrics"][1][end] for end in ("lower", "upper")] == [
        interval.lower,
        interval.upper,
    ]
    assert found["metrics"][0]["n_used"] == N_USERS
    assert found["metrics"][0]["conventions"]["ties"] == "loss"
    assert [(s["segment"], s["metric"], s["n_rows"]) for s in found["segments"]] == [
        ("[new]", "pap@3", 60), ("[new]", "auc", 60), ("old", "pap@3", 120), ("old", "auc", 120),
    ]  # fmt: skip
    assert found["pooled"]["lift"] > 1


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".parquet"])
def test_other_formats_give_the_same(tmp_path, capsys, suffix):
    plain = write(tmp_path / "a.csv", rows())
    if suffix == ".parquet":
        pd = pytest.importorskip("pandas")
        other = tmp_path / "b.parquet"
        pd.DataFrame(rows()).to_parquet(other)
    else:
        other = write(tmp_path / f"b{suffix}", rows())
    one, two = (
        json.loads(told(capsys, p, "--json", "--by", "tier"))["metrics"] for p in (plain, other)
    )
    assert one == two


def test_text_output_shows_tables_rules_and_comparison(tmp_path, capsys):
    path, other = write(tmp_path / "a.csv", rows()), write(tmp_path / "b.csv", rows(1, 3.0))
    assert main(["evaluate", str(path), "--by", "tier", "--compare", str(other), "-m", "auc"]) == 0
    out, err = capsys.readouterr()
    assert "tier = [new]" in out
    assert "Comparison: paired permutation test" in out
    assert "ties=loss" in err
    assert "AUPRC" in err


def test_comparison_is_that_of_the_library(tmp_path, capsys):
    one, two = rows(), rows(1, 3.0)
    path, other = write(tmp_path / "a.csv", one), write(tmp_path / "b.csv", two)
    found = json.loads(told(capsys, path, "--compare", other, "-m", "auc,ap", "--json"))
    tables = [
        metrics.evaluate(["auc", "ap"], t["score"], t["label"], t["user_id"]) for t in (one, two)
    ]
    expected = metrics.compare(*tables, n_resamples=2000)
    assert [c["p_value"] for c in found["comparison"]] == [c.p_value for c in expected]
    assert [c["difference"] for c in found["comparison"]] == [c.difference for c in expected]


def test_model_and_score_files(tmp_path, capsys):
    table = rows()
    path = write(tmp_path / "data.csv", table, ("user_id", "label", "x1", "x2", "tier"))
    certificate = {"objective": 1.0, "lower_bound": 1.0, "gap": 0.0, "status": "optimal"}
    certificate |= {"converged": True, "n_iter": 1}
    model = tmp_path / "model"
    save_model(model, Model(np.array([1.0, 0.2]), 3, "ts", 1.0, "cutting_plane", certificate,
                            feature_names=("x1", "x2")))  # fmt: skip
    scores = table["x1"] + 0.2 * table["x2"]
    expected = metrics.evaluate(["auc"], scores, table["label"], table["user_id"]).mean("auc")
    common = ("-m", "auc", "--group", "user_id", "--by", "tier", "--json", "--interval", "none")
    for arguments in ((model, path), (path, "--model", model)):
        found = json.loads(told(capsys, *arguments, *common))
        assert found["metrics"][0]["value"] == pytest.approx(expected, abs=1e-12)
        assert [s["segment"] for s in found["segments"]] == ["[new]", "old"]
    lines = tmp_path / "scores.txt"
    lines.write_text("".join(f"{s!r}\n" for s in scores.tolist()))
    found = json.loads(told(capsys, path, "--scores", lines, "--compare", lines, *common))
    assert found["metrics"][0]["value"] == pytest.approx(expected, abs=1e-12)
    assert found["comparison"][0]["p_value"] == 1.0


def test_svmlight_with_a_model(tmp_path, capsys):
    path = tmp_path / "data.txt"
    path.write_text("3 qid:1 1:2.0\n0 qid:1 1:1.0\n1 qid:2 1:0.5\n2 qid:2 1:0.1\n")
    certificate = dict.fromkeys(("objective", "lower_bound", "gap"), 0.5)
    certificate |= {"status": "optimal", "converged": True, "n_iter": 1}
    model = tmp_path / "model"
    save_model(model, Model(np.ones(1), 1, "avg", 1.0, "cutting_plane", certificate, first_index=1,
                            relevance_threshold=2.0))  # fmt: skip
    found = json.loads(told(capsys, model, path, "-m", "auc", "--json", "--interval", "none"))
    assert found["metrics"][0]["value"] == 0.5
    assert "needs a table" in told(capsys, model, path, "--by", "tier", status=2)


def test_files_written(tmp_path, capsys):
    table = rows()
    path = write(tmp_path / "a.csv", table)
    out, users = tmp_path / "out.csv", tmp_path / "users.csv"
    told(capsys, path, "-m", "auc", "--by", "tier", "--csv", out, "--per-user", users)
    with out.open() as file:
        assert [line["segment"] for line in csv.DictReader(file)] == ["", "[new]", "old"]
    values = metrics.per_user("auc", table["score"], table["label"], table["user_id"])
    with users.open() as file:
        np.testing.assert_allclose([float(line["auc"]) for line in csv.DictReader(file)], values)
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    told(capsys, path, "-m", "pap@4,auc", "--by", "tier", "--html", page)
    assert '"k":4' in page.read_text(encoding="utf-8")


IDS = ["007", "7", "1e3", "1000", "12345678901234567890", "12345678901234567891", "nan"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_users_and_items_stay_apart_and_keep_their_names(tmp_path, capsys, suffix):
    """Each user has one list of two items that would be one if they were read as numbers."""
    table = {
        "user_id": np.repeat(IDS, 2), "item_id": np.tile(["01", "1"], len(IDS)),
        "label": np.tile([1, 0], len(IDS)), "score": np.arange(2.0 * len(IDS)),
    }  # fmt: skip
    path, users = tmp_path / f"a{suffix}", tmp_path / "users.csv"
    if suffix == ".csv":
        write(path, table, list(table))
    else:
        pytest.importorskip("pandas").DataFrame(table).to_parquet(path)
    found = json.loads(told(capsys, path, "-m", "auc", "--per-user", users, "--json"))
    assert found["metrics"][0]["n_used"] == len(IDS)
    with users.open() as file:
        assert [line["user"] for line in csv.DictReader(file)] == sorted(IDS)


def test_a_table_of_numbers_compares_with_one_of_text(tmp_path, capsys):
    table = rows() | {"user_id": np.repeat(np.arange(N_USERS), N)}
    plain, typed = write(tmp_path / "a.csv", table), tmp_path / "b.parquet"
    pytest.importorskip("pandas").DataFrame(table).to_parquet(typed)
    for one, two in ((plain, typed), (typed, plain)):
        found = json.loads(told(capsys, one, "--compare", two, "-m", "auc", "--json"))
        assert found["comparison"][0]["n_users"] == N_USERS


def test_scores_beyond_double_precision_do_not_tie(tmp_path, capsys):
    """Nanoseconds as scores: read as floats, a positive and a negative would tie."""
    path = tmp_path / "a.csv"
    path.write_text(f"user,label,score\n1,1,{2**60 + 1}\n1,0,{2**60}\n")
    columns = score_files.Columns()
    assert score_files._of_scores(path, columns).frame["score"].tolist() == [2**60 + 1, 2**60]
    path.write_text(f"user,label,score\n1,1,{2**60 + 1}\n1,0,0.5\n")
    assert score_files._of_scores(path, columns).frame["score"].dtype == float


def test_missing_values_of_a_column_to_split_by(tmp_path, capsys):
    table = {"user": [1, 1, 2, 2], "label": [1, 0, 1, 0], "score": [2.0, 1, 2, 1]}
    table["age"] = [7, 7, None, None]
    path = tmp_path / "a.parquet"
    pd = pytest.importorskip("pandas")
    pd.DataFrame(table).astype({"age": "Int64"}).to_parquet(path)
    found = json.loads(told(capsys, path, "-m", "auc", "--by", "age", "--json"))
    assert [s["segment"] for s in found["segments"]] == [7, "missing"]
    plain = tmp_path / "a.csv"
    plain.write_text("user,label,score,age\n1,1,2,7\n1,0,1,7\n2,1,2,\n2,0,1,\n")
    found = json.loads(told(capsys, plain, "-m", "auc", "--by", "age", "--json"))
    assert [s["segment"] for s in found["segments"]] == ["", "7"]


def test_ranks_one_list_and_rules(tmp_path, capsys):
    path = tmp_path / "r.csv"
    path.write_text("user,item,rank,label\n1,a,1,0\n1,b,2,1\n2,a,1,1\n2,b,2,1\n")
    found = json.loads(
        told(capsys, path, "--rank", "rank", "-m", "pap@1", "--preset", "rectools", "--json",
             "--interval", "kl")
    )  # fmt: skip
    assert found["metrics"][0]["value"] == 0.5
    assert found["metrics"][0]["touched"]["few_negatives"] == 1
    whole = tmp_path / "w.csv"
    whole.write_text("score,label\n3,1\n2,0\n1,1\n")
    found = json.loads(told(capsys, whole, "--one-list", "-m", "auc", "--json"))
    assert found["metrics"][0]["value"] == 0.5


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", (), "the first line must name the columns, but it is empty"),
        ("user,label,score\n1,0,nan\n1,1,2\n", (), "line 2: column 'score' holds 'nan'"),
        ("user,label,score\n1,0,1\n1,3,2\n", (), "relevance_threshold"),
        ("user,label\n1,0\n1,1\n", (), "no column 'score' for the score (--score"),
        ("who,label,score\n1,0,1\n1,1,2\n", (), "name it with --group, or give --one-list"),
        ("user,item,label,score\n1,5,0,1\n1,5,1,2\n", (), "item 5 of user 1 occurs in row 0"),
        ("user,label,score\n1,0,1\n1,1,2\n", ("-m", "map"), "did you mean 'ap'"),
        ("user,label,score\n1,0,1\n1,1,2\n", ("--by", "tier"), "no column 'tier' to split by"),
        ("user,label,score\n1,0,1\n1,1,2\n", ("--level", "2"), "between 0 and 1"),
        ("user,label,score\n1,0,1\n1,1,2\n", ("--csv", "/no/such/x.csv"), "cannot write"),
        ("user,label,score\n1,1,1\n1,1,2\n", (), "AUROC and AUPRC need both"),
        ("user,label,rank\n1,0,1\n1,1,3\n", ("--rank", "rank"), "has the rank 3 in row 1"),
    ],
)
def test_wrong_input_has_status_2_and_a_reason(tmp_path, capsys, content, arguments, message):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert message in told(capsys, path, *arguments, status=2)


def test_comparison_on_other_users_or_labels_is_refused(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows())
    fewer, other = rows(), rows()
    kept = fewer["user_id"] != "u03"
    fewer = {name: column[kept] for name, column in fewer.items()}
    other["label"][5] = 1 - other["label"][5]
    for name, table, message in (
        ("b.csv", fewer, "1 users are only in the first table (u03)"),
        ("c.csv", other, "user u00 has"),
    ):
        second = write(tmp_path / name, table)
        assert message in told(capsys, path, "--compare", second, status=2)


def test_missing_files_and_contradictions(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows())
    assert "cannot read" in told(capsys, tmp_path / "none.csv", status=2)
    assert "not both" in told(capsys, path, "--model", path, "--scores", path, status=2)
    assert "give the model once" in told(capsys, path, path, "--model", path, status=2)
    text = tmp_path / "a.txt"
    text.write_text("1 qid:1 1:2\n")
    assert "give --model or --scores" in told(capsys, text, status=2)
    assert "not a readable Parquet" in told(capsys, _damaged(tmp_path), status=2)


def _damaged(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 not really")
    return path


def test_bad_score_files(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("group,label,x\n1,0,1\n1,1,2\n")
    scores = tmp_path / "s.txt"
    for content, message in (("1\n", "1 scores for 2 rows"), ("1\ntwo\n", "line 2 is 'two'")):
        scores.write_text(content)
        assert message in told(capsys, path, "--scores", scores, status=2)


def test_two_columns_of_one_table_are_compared(tmp_path, capsys):
    one, two = rows(), rows(1, 3.0)
    path = write(
        tmp_path / "a.csv", one | {"other": two["score"]},
        ("user_id", "item_id", "label", "score", "other"),
    )  # fmt: skip
    second = write(tmp_path / "b.csv", two)
    in_files, in_columns = (
        json.loads(told(capsys, path, "--compare", other, "-m", "auc", "--json"))["comparison"]
        for other in (second, "other")
    )
    assert in_files == in_columns and in_files[0]["difference"] != 0
    model = tmp_path / "scores.txt"
    model.write_text("".join(f"{s!r}\n" for s in one["score"].tolist()))
    scored = ("--scores", model, "--group", "user_id", "--compare", "other", "-m", "auc", "--json")
    assert json.loads(told(capsys, path, *scored))["comparison"] == in_columns
    for other, message in (
        ("nothing", "no such file, and no such column in"),
        ("score", "is the column that is evaluated"),
    ):
        assert message in told(capsys, path, "--compare", other, status=2)


def test_two_columns_of_ranks_are_compared(tmp_path, capsys):
    path = tmp_path / "r.csv"
    path.write_text("user,item,label,a,b\n1,p,1,1,2\n1,q,0,2,1\n2,p,1,1,2\n2,q,0,2,1\n")
    shown = told(capsys, path, "--rank", "a", "--compare", "b", "-m", "auc", "--json")
    assert json.loads(shown)["comparison"][0]["difference"] == 1.0


@pytest.mark.parametrize("gains", ["linear", "exponential"])
def test_gains_of_graded_labels_are_those_of_the_library(tmp_path, capsys, gains):
    table = rows()
    table["label"] = table["label"] * (1 + np.arange(N_USERS * N) % 3)
    path = write(tmp_path / "a.csv", table)
    graded = (path, "-m", "ndcg@5", "--relevance-threshold", 1, "--json")
    found = json.loads(told(capsys, *graded, "--gains", gains))["metrics"][0]["value"]
    expected = metrics.evaluate(
        "ndcg@5", table["score"], table["label"], table["user_id"], gains=gains,
        relevance_threshold=1,
    )  # fmt: skip
    assert found == expected.mean("ndcg@5")
    plain = json.loads(told(capsys, *graded))["metrics"][0]["value"]
    assert (found == plain) == (gains == "linear")
    assert "must be linear or exponential" in told(capsys, path, "--gains", "cubic", status=2)


def test_columns_are_found_in_any_spelling_and_said(tmp_path, capsys):
    table = rows()
    path = write(tmp_path / "a.csv", table)
    path.write_text(path.read_text().replace("user_id,item_id,tier", "userId,itemId,tier"))
    assert main(["evaluate", str(path), "-m", "auc"]) == 0
    columns = "user 'userId', label 'label', score 'score', item 'itemId', ignored 'tier'"
    assert f"{path}: {columns}" in capsys.readouterr().err
    error = told(capsys, path, "--group", "who", status=2)
    assert "no column 'who' for the user (--group); it has 'userId', 'itemId', 'tier'" in error


def test_without_a_usable_user_the_status_is_1(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows())
    assert main(["evaluate", str(path), "-m", "pap@40", "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)["metrics"][0]
    assert found["value"] is None and found["n_used"] == 0
    assert f"pap@40: no user can be used ({N_USERS} with few negatives of {N_USERS} users)" in err
    assert main(["evaluate", str(path), "-m", "pap@40,auc"]) == 0
    assert "pap@40: no user can be used" in capsys.readouterr().err


def test_all_tied_scores_are_called_so(tmp_path, capsys):
    path = write(tmp_path / "a.csv", rows() | {"score": np.zeros(N_USERS * N)})
    for more in ([], ["--one-list"]):
        assert main(["evaluate", str(path), "-m", "auc", *more]) == 0
        assert "all scores of every user are equal, so nothing is ranked" in capsys.readouterr().err
    constant = np.repeat(np.arange(N_USERS), N)
    path = write(tmp_path / "b.csv", rows() | {"score": constant})
    assert main(["evaluate", str(path), "-m", "auc"]) == 0
    assert "all scores of every user are equal" in capsys.readouterr().err
    constant[0] += 1
    path = write(tmp_path / "c.csv", rows() | {"score": constant})
    assert main(["evaluate", str(path), "-m", "auc"]) == 0
    assert "nothing is ranked" not in capsys.readouterr().err


def test_what_is_wrong_with_options_is_said_without_a_file_and_once(tmp_path, capsys):
    absent = tmp_path / "absent.csv"
    for arguments, message in (
        (("--level", "95"), "--level 95 must lie between 0 and 1; did you mean 0.95?"),
        (("--preset", "nix"), "preset='nix' is not known"),
        (("-m", "map"), "there is no metric 'map'"),
        (("--ties", "toss"), "ties='toss' is not known"),
        (("--discount", "none"), "discount='none' does not exist"),
    ):
        assert told(capsys, absent, *arguments, status=2).startswith(f"Error: {message}")
    data = tmp_path / "d.csv"
    data.write_text("group,label,x\n1,0,1\n1,1,2\n")
    assert told(capsys, data, "--scores", absent, status=2).count("absent.csv") == 1
