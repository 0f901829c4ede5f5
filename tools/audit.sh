#!/usr/bin/env bash
# What a fresh installation brings along, held against the known advisories. Needs a network.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/plain"
"$work/plain/bin/pip" install --quiet --disable-pip-version-check .
"$work/plain/bin/pip" check
"$work/plain/bin/pip" freeze --exclude structsvm-papk >"$work/installed.txt"
"${PYTHON:-python3}" -m venv "$work/audit"
"$work/audit/bin/pip" install --quiet --disable-pip-version-check pip-audit
for service in pypi osv; do
  "$work/audit/bin/pip-audit" --requirement "$work/installed.txt" --no-deps --disable-pip \
    --vulnerability-service "$service"
done
