#!/usr/bin/env bash
# What a user gets: sdist and wheel are built, checked, and installed apart, away from this tree.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}

"$python" -m venv "$work/build"
export PATH=$work/build/bin:$PATH
pip install --quiet --disable-pip-version-check build twine uv
python -m build --installer uv --outdir "$work/dist" . >"$work/log" || { cat "$work/log"; exit 1; }
twine check --strict "$work"/dist/*
cd "$work"

cat >script.py <<'END'
"""A user's script, checked against the annotations of the installed package, and run."""

from structsvm_papk import PAPKRanker
from structsvm_papk.datasets import engagement_lists

lists = engagement_lists(n_users=40, n_features=5, seed=1)
ranker = PAPKRanker(k=3, surrogate="ts", alpha=0.1).fit(lists.X, lists.y, groups=lists.groups)
gap: float = ranker.result_.gap
assert gap <= 1e-6, gap
END
cat >rows.py <<'END'
import numpy as np

from structsvm_papk.datasets import engagement_lists

lists = engagement_lists(n_users=40, n_features=5, seed=1)
rows = np.column_stack([lists.y, lists.groups, lists.X])
names = ["label", "group", *"abcde"]
np.savetxt("rows.csv", rows, "%.17g", ",", header=",".join(names), comments="")
END
use() { # use NAME: what is installed, from the command line, from a script, and its annotations
  mkdir "from-$1"
  (
    cd "from-$1"
    "$bin/structsvm-papk" demo --json >demo.json
    "$bin/python" ../rows.py
    "$bin/structsvm-papk" fit rows.csv --model m.model --k 3 --checkpoint kept --json >fit.json
    "$bin/structsvm-papk" predict m.model rows.csv --top 3 -o top.csv
    "$bin/python" -c 'import importlib.resources as r; p = r.files("structsvm_papk") / "py.typed"; assert p.is_file(), p'
    "$bin/python" -c 'import structsvm_papk as s; assert "site-packages" in s.__file__, s.__file__'
    "$bin/python" ../script.py
    "$bin/mypy" --cache-dir ../mypy --strict ../script.py
  )
  printf '%s: installed and used\n' "$1"
}

"$python" -m venv env
bin=$work/env/bin
uv pip install --quiet --python "$bin/python" dist/*.whl 'mypy==2.4.1'
use wheel
# what both depend on is there already, and the same
uv pip install --quiet --python "$bin/python" --no-deps --reinstall dist/*.tar.gz
use sdist
