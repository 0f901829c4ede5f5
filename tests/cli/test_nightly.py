"""The scripts of the page on nightly jobs run: the first night, a second, and one that fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "nightly.md"

if not PAGE.exists() or not shutil.which("sh"):
    pytest.skip("the documentation, or a shell, is not here", allow_module_level=True)


def script(word):
    """The script of the page that holds a word, in the folder that it is run in."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if word in block]
    return re.sub(r"^cd .*$", "", code, flags=re.MULTILINE)


def night(code, folder):
    """Status of a night."""
    commands = Path(sys.executable).parent
    where = os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    where |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(["sh", "-c", code], cwd=folder, env=where, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def write_runs(folder, name, n_queries, seed):
    """Two runs of which the second is much better, and judgments."""
    rng = np.random.default_rng(seed)
    lines = {"a": [], "b": [], "qrels": []}
    for q in range(n_queries):
        relevance = rng.normal(size=12)
        for d, r in enumerate(relevance):
            lines["qrels"].append(f"{name}{q} 0 d{d} {int(r > 0.7)}")
        for run, spread in (("a", 4.0), ("b", 0.3)):
            for d, s in enumerate(relevance + spread * rng.normal(size=12)):
                lines[run].append(f"{name}{q} Q0 d{d} 0 {s:.6f} t")
    (folder / name).mkdir()
    for run in "ab":
        (folder / name / f"{run}.run").write_text("\n".join(lines[run]) + "\n")
    (folder / f"{name}.qrels").write_text("\n".join(lines["qrels"]) + "\n")


@pytest.mark.slow
def test_nights_of_fusion(tmp_path):
    code = script("--for-engine")
    write_runs(tmp_path, "train", 20, seed=0)
    write_runs(tmp_path, "new", 20, seed=1)
    status, said = night(code, tmp_path)
    assert status == 0, said
    current = tmp_path / "current.json"
    assert "kept current.json" in said and current.exists()  # the first night
    good = current.read_text()
    bad = good.replace('"b": 1.0', '"b": 0.0').replace('"a": 0.0', '"a": 1.0')
    if bad == good:  # learned or equal weights
        bad = re.sub(r'"b": [0-9.e-]+', '"b": 0.0', good)
    current.write_text(bad)
    status, said = night(code, tmp_path)
    assert status == 0 and current.read_text() == good, said
    (tmp_path / "new.qrels").unlink()
    current.write_text(bad)
    status, said = night(code, tmp_path)
    assert status == 2 and "new.qrels" in said
    assert current.read_text() == bad
    (tmp_path / "train.qrels").write_text("nonsense\n")
    status, said = night(code, tmp_path)
    assert status == 2 and "nonsense" in said and current.read_text() == bad


@pytest.mark.slow
def test_nights_of_a_model(tmp_path):
    code = script("fit train.csv")
    commands = Path(sys.executable).with_name("structsvm-papk")
    subprocess.run([commands, "example-data", "."], cwd=tmp_path, check=True, capture_output=True)
    status, said = night(code, tmp_path)
    assert status == 0 and "kept current.model" in said, said
    (tmp_path / "new.csv").unlink()
    status, said = night(code, tmp_path)
    assert status == 2 and "new.csv" in said
