#!/usr/bin/env bash
# The tests on the oldest versions that pyproject.toml allows, ONNX among them. Arguments go to
# pytest.
#
#     tools/lower_bounds.sh                 the whole suite
#     tools/lower_bounds.sh tests/test_qp.py
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work"
"$work/bin/pip" install --quiet --disable-pip-version-check uv
"$work/bin/uv" pip install --quiet --python "$work/bin/python" \
  --resolution lowest-direct --reinstall-package structsvm-papk \
  '.[test,onnx,trees]' 'onnxruntime>=1.20'
"$work/bin/uv" pip freeze --python "$work/bin/python" |
  grep -iE '^(cvxpy|joblib|numba|numpy|onnx|pandas|piqp|pyarrow|rich|scikit-learn|scipy|threadpoolctl|typer)=='
"$work/bin/pytest" -q -p no:cacheprovider "$@"
