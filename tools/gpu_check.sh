#!/usr/bin/env bash
# On a machine with a GPU and an installed torch, and perhaps no network: build, test, time; the kernels compiled at run
# time first, then, where nvcc is, those of the module that it makes.
# Usage: tools/gpu_check.sh [OUT_DIR]; writes gpu.json, gpu.txt and the logs there, whatever fails. PYTHON names another
# interpreter; WHEELS a folder with what it lacks (pybind11, pytest, ... and what regnet needs).
# Every step has a time limit, and what would end after 470 s is stopped or left out. Not yet run on a GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=$(mkdir -p "${1:-build/gpu}" && cd "${1:-build/gpu}" && pwd)
work=$(mktemp -d)
export PYTHONPATH=$PWD
trap 'rm -rf "$work"' EXIT

# step NAME SECONDS COMMAND...: the log, the exit status and the time of each go to OUT_DIR.
: >"$out/steps.txt"
step() {
    local name=$1 limit=$2 begun=$SECONDS code
    shift 2
    limit=$((limit < 470 - SECONDS ? limit : 470 - SECONDS))
    if ((limit <= 0)); then echo "$name 124 0" | tee -a "$out/steps.txt"; return 124; fi
    timeout "$limit" "$@" >"$out/$name.log" 2>&1
    code=$?
    echo "$name $code $((SECONDS - begun))" | tee -a "$out/steps.txt"
    ((code == 0)) || tail -n 20 "$out/$name.log"
    return "$code"
}
has() { "$python" -c "import $1" 2>/dev/null; }

# What is there, first.
"$python" --version
nvcc --version | tail -n 2
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
has torch || { echo "no torch in $python" >&2; exit 2; }
for name in pybind11 pytest numpy scipy nibabel rich; do
    has "$name" || "$python" -m pip install -q --no-index --find-links "${WHEELS:?$name is missing: set WHEELS to a folder that has it}" "$name" || exit 2
done

# Without cmake, which a bare machine may lack: one compiler call a source, as in csrc/CMakeLists.txt and csrc/cuda.cmake.
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
includes=$("$python" -m pybind11 --includes)
export includes suffix work python
host_modules() {
    set -e
    local file job jobs=()
    local host="-std=c++17 -O3 -Icsrc/include -I$work -fPIC -fvisibility=hidden $includes"
    "$python" csrc/embed.py "$work/sources.inl" csrc/include/regnet/*.hpp
    for file in csrc/bind.cpp csrc/src/plan.cpp; do
        c++ $host -DREGNET_PLAN -DREGNET_MODULE=_plan -c "$file" -o "$work/$(basename "$file").plan.o" & jobs+=($!)
    done
    for file in csrc/bind.cpp csrc/src/{sample,contract,scatter,vote,lines,lattice}.cpp; do
        c++ $host -DREGNET_MODULE=_cpu_base -fopenmp -fno-math-errno -fno-trapping-math -Wno-psabi -c "$file" \
            -o "$work/$(basename "$file").cpu.o" & jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
    c++ -shared "$work"/*.plan.o -o "regnet/ops/_plan$suffix"
    c++ -shared -fopenmp "$work"/*.cpu.o -o "regnet/ops/_cpu_base$suffix"
}
cuda_module() {
    set -e
    local file job jobs=() architecture toolkit
    architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    toolkit=$(nvcc --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
    local defined=(-DREGNET_CUDA -DREGNET_MODULE=_cuda "-DREGNET_TOOLKIT=\"$toolkit\"" "-DREGNET_ARCHITECTURES=\"sm_$architecture\"")
    for file in csrc/src/*.cu; do
        nvcc -std=c++17 -O3 -Icsrc/include --expt-relaxed-constexpr "-arch=sm_$architecture" -Xptxas=-v \
            "-Xcompiler=-fPIC,-fvisibility=hidden" "${defined[@]}" -c "$file" -o "$work/$(basename "$file").cuda.o" & jobs+=($!)
    done
    c++ -std=c++17 -O3 -Icsrc/include -fPIC -fvisibility=hidden $includes "${defined[@]}" -c csrc/bind.cpp -o "$work/bind.cuda.o" & jobs+=($!)
    for job in "${jobs[@]}"; do wait "$job"; done
    nvcc -shared -cudart=static "$work"/*.cuda.o -o "regnet/ops/_cuda$suffix"
}
export -f host_modules cuda_module

tests() { # NAME SECONDS OPTIONS...
    step "$1" "$2" "$python" -m pytest -q -p no:cacheprovider -m cuda tests/ops/test_cuda.py "${@:3}"
}
rm -f regnet/ops/_cuda.*.so "$out"/*.json
if step build 120 bash -c host_modules; then
    XDG_CACHE_HOME=$work/cache tests run_time 60 -k "other_operators or stream or graph or waits or autocast"
    if command -v nvcc >/dev/null; then step build_cuda 120 bash -c cuda_module; fi
    tests tests 75
    step benchmark 90 "$python" benchmarks/gpu.py --json "$out/gpu.json"
    step training 90 "$python" benchmarks/gpu_training.py --json "$out/training.json"
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck; do
            step "$tool" 35 compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$python" -m pytest -q -p no:cacheprovider -m cuda tests/ops/test_cuda.py -k other_operators
        done
    fi
fi

# One table and one JSON: the benchmark's rows, if there are any, and how every step ended.
cat "$out/benchmark.log" "$out/training.log" "$out/steps.txt" >"$out/gpu.txt" 2>/dev/null
"$python" - "$out" <<'END'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
result = {}
for name in ("gpu.json", "training.json"):
    if (out / name).exists():
        result |= json.loads((out / name).read_text())
steps = [line.split() for line in (out / "steps.txt").read_text().splitlines()]
result["steps"] = [{"name": n, "exit": int(code), "seconds": int(s)} for n, code, s in steps]
(out / "gpu.json").write_text(json.dumps(result, indent=1))
END
echo "all in $SECONDS s; $out/gpu.json"
! grep -qv '^[a-z_]* 0 ' "$out/steps.txt"
