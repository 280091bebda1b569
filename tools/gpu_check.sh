#!/usr/bin/env bash
# On a machine with a GPU, nvcc and an installed torch, and perhaps no network: build the module for GPUs, test it, time it.
# Usage: tools/gpu_check.sh [OUT_DIR]; writes gpu.json, gpu.txt and the logs there. PYTHON names another interpreter;
# WHEELS a folder with what it lacks (pybind11, cmake, ninja, pytest, ... and what regnet needs).
# Not yet run: no machine of the project has had a GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=$(mkdir -p "${1:-build/gpu}" && cd "${1:-build/gpu}" && pwd)
failed=0

has() { "$python" -c "import $1" 2>/dev/null; }

# What is there, first.
"$python" --version
nvcc --version | tail -n 2
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
has torch || { echo "no torch in $python" >&2; exit 2; }
for name in pybind11 pytest numpy scipy nibabel rich; do
    has "$name" || "$python" -m pip install -q --no-index --find-links "${WHEELS:?$name is missing: set WHEELS to a folder that has it}" "$name" || exit 2
done

architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without cmake, which a bare machine may lack: one compiler call a source, as in csrc/CMakeLists.txt and csrc/cuda.cmake.
toolkit=$(nvcc --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
common=(-std=c++17 -O3 -Icsrc/include)
host=("${common[@]}" -fPIC -fvisibility=hidden $("$python" -m pybind11 --includes))
cuda=(-DREGNET_CUDA -DREGNET_MODULE=_cuda "-DREGNET_TOOLKIT=\"$toolkit\"" "-DREGNET_ARCHITECTURES=\"sm_$architecture\"")
cpu=(-DREGNET_MODULE=_cpu_base -fopenmp -fno-math-errno -fno-trapping-math -Wno-psabi)
gpu=(--expt-relaxed-constexpr "-arch=sm_$architecture" -Xptxas=-v "-Xcompiler=-fPIC,-fvisibility=hidden")

build() {
    local file job jobs=()
    for file in csrc/src/*.cu; do
        nvcc "${common[@]}" "${gpu[@]}" "${cuda[@]}" -c "$file" -o "$work/$(basename "$file").cuda.o" & jobs+=($!)
    done
    c++ "${host[@]}" "${cuda[@]}" -c csrc/bind.cpp -o "$work/bind.cuda.o" & jobs+=($!)
    for file in csrc/bind.cpp csrc/src/*.cpp; do
        c++ "${host[@]}" "${cpu[@]}" -c "$file" -o "$work/$(basename "$file").cpu.o" & jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || return 1; done
    nvcc -shared -cudart=static "$work"/*.cuda.o -o "regnet/ops/_cuda$suffix" &&
        c++ -shared -fopenmp "$work"/*.cpu.o -o "regnet/ops/_cpu_base$suffix"
}
started=$SECONDS
build >"$out/build.log" 2>&1 || { tail -n 40 "$out/build.log"; exit 1; }
echo "built in $((SECONDS - started)) s"

export PYTHONPATH=$PWD
timeout 240 "$python" -m pytest -q -p no:cacheprovider -m cuda tests/ops/test_cuda.py >"$out/tests.log" 2>&1 || failed=1
tail -n 20 "$out/tests.log"
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        timeout 60 compute-sanitizer --tool "$tool" --error-exitcode 9 "$python" -m pytest -q -p no:cacheprovider -m cuda \
            tests/ops/test_cuda.py -k "other_operators" >"$out/$tool.log" 2>&1 || { failed=1; tail -n 20 "$out/$tool.log"; }
    done
fi
timeout 120 "$python" benchmarks/gpu.py --json "$out/gpu.json" | tee "$out/gpu.txt" || failed=1
echo "all in $SECONDS s"
exit "$failed"
