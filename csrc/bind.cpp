// pybind11 only: functions of numbers and tuples.  No class is registered, so several such modules live together.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>
#include "regnet/ops.hpp"
#if defined(REGNET_PLAN)
#include "regnet/plan.hpp"
#elif defined(REGNET_CUDA)
#include "regnet/cuda.hpp"
#else
#include "regnet/drivers.hpp"
#endif
namespace py = pybind11;
using namespace regnet;

namespace {
// (address, dtype: the number of a DType, shape, strides in elements), or None
using Tensor = std::optional<std::tuple<std::uintptr_t, int, std::vector<int64_t>, std::vector<int64_t>>>;

TensorRef ref(const Tensor& tensor) {
    TensorRef t;
    if (!tensor) return t;
    const auto& [data, dtype, shape, stride] = *tensor;
    if (shape.size() > kMaxRank || shape.size() != stride.size()) throw std::invalid_argument("expected a tensor of at most 5 axes");
    t.data = reinterpret_cast<void*>(data);
    t.dtype = DType(dtype);
    t.rank = int(shape.size());
    std::copy(shape.begin(), shape.end(), t.shape.begin());
    std::copy(stride.begin(), stride.end(), t.stride.begin());
    return t;
}
#if defined(REGNET_PLAN)
using Team = py::list;  // receives what to launch: the type of the functor, its bytes, blocks, samples
void add(void* plan, const std::type_info& body, const void* bytes, size_t size, int64_t count) {
    std::string name = body.name();
    py::detail::clean_type_id(name);
    static_cast<py::list*>(plan)->append(py::make_tuple(name, py::bytes(static_cast<const char*>(bytes), size), blocks_for(count), count));
}
Cuda device(const Team& team, const char*) { return {const_cast<py::list*>(&team), add}; }
#elif defined(REGNET_CUDA)
using Team = std::tuple<int, std::uintptr_t>;  // the number of a GPU and the address of one of its streams
Cuda device(const Team& team, const char* operation) { return {std::get<0>(team), reinterpret_cast<void*>(std::get<1>(team)), operation}; }
#else
using Team = std::tuple<int, int64_t>;  // how many threads, and for how many voxels another one is worth waking
Cpu device(const Team& team, const char*) { return {std::get<0>(team), std::get<1>(team)}; }
#endif

Where where(const Tensor& coords, bool relative, const Tensor& matrix) { return {ref(coords), relative, ref(matrix)}; }

Options options(const std::vector<int>& order, const std::vector<int>& bound, int extrapolate) {
    constexpr int silent = 4;  // as in ops/_families.py
    Options o{{}, {}, Extrapolate(extrapolate % silent), extrapolate & silent ? 0. : std::numeric_limits<double>::quiet_NaN()};
    if (order.size() > 3 || bound.size() != order.size()) throw std::invalid_argument("expected an order and a bound for each of at most 3 axes");
    for (size_t d = 0; d < order.size(); ++d) { o.order[d] = order[d]; o.bound[d] = Bound(bound[d]); }
    return o;
}
#if !defined(REGNET_CUDA) && !defined(REGNET_PLAN)
bool supports_v3() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}
#endif
}  // namespace

PYBIND11_MODULE(REGNET_MODULE, m) {
    using Ints = std::vector<int>;
#ifdef REGNET_PLAN
    const auto nogil = py::call_guard<>();  // a plan is Python's
#else
    const auto nogil = py::call_guard<py::gil_scoped_release>();
#endif
    m.def("sample", [](const Team& team, int k, const Tensor& coeff, const Tensor& coords, bool relative, const Tensor& matrix,
                       const Tensor& out, const Ints& order, const Ints& bound, int extrapolate) {
        sample(device(team, "sample"), k, ref(coeff), where(coords, relative, matrix), ref(out), options(order, bound, extrapolate));
    }, nogil);
    m.def("contract", [](const Team& team, int k, const Tensor& coeff, const Tensor& coords, bool relative, const Tensor& matrix,
                         const Tensor& value, const Tensor& out, const Ints& order, const Ints& bound, int extrapolate) {
        contract(device(team, "contract"), k, ref(coeff), where(coords, relative, matrix), ref(value), ref(out), options(order, bound, extrapolate));
    }, nogil);
    m.def("scatter", [](const Team& team, int k, const Tensor& value, const Tensor& coords, bool relative, const Tensor& matrix,
                        const Tensor& target, const Ints& order, const Ints& bound, int extrapolate) {
        scatter(device(team, "scatter"), k, ref(value), where(coords, relative, matrix), ref(target), options(order, bound, extrapolate));
    }, nogil);
    m.def("vote", [](const Team& team, const Tensor& labels, const Tensor& coords, bool relative, const Tensor& matrix, const Tensor& out,
                     int order, int64_t background) {
        vote(device(team, "vote"), ref(labels), where(coords, relative, matrix), ref(out), order, background);
    }, nogil);
    m.def("prefilter", [](const Team& team, const Tensor& from, const Tensor& to, const Tensor& workspace, int axis, int order, int bound, bool adjoint) {
        prefilter(device(team, "prefilter"), ref(from), ref(to), ref(workspace), axis, order, Bound(bound), adjoint);
    }, nogil);
    m.def("box_sum", [](const Team& team, const Tensor& from, const Tensor& to, const Tensor& workspace, int axis, int64_t window) {
        box_sum(device(team, "box_sum"), ref(from), ref(to), ref(workspace), axis, window);
    }, nogil);
    m.def("lattice", [](const Team& team, const Tensor& from, const Tensor& to, const Tensor& workspace, int axis, int order, int bound,
                        double spacing, double scale, double offset, double divisor, bool adjoint) {
        lattice(device(team, "lattice"), ref(from), ref(to), ref(workspace), axis, order, Bound(bound), {spacing, scale, offset, divisor}, adjoint);
    }, nogil);
#if defined(REGNET_CUDA) || defined(REGNET_PLAN)
    m.def("scatter_whole", [](const Team& team, int k, const Tensor& value, const Tensor& coords, bool relative, const Tensor& matrix,
                              const Tensor& target, const Ints& order, const Ints& bound, int extrapolate) {
        scatter_whole(device(team, "scatter_whole"), k, ref(value), where(coords, relative, matrix), ref(target), options(order, bound, extrapolate));
    }, nogil);
#endif
#if defined(REGNET_PLAN)
    py::dict sources;
#include "sources.inl"
    m.attr("sources") = sources;
    m.attr("threads") = kThreads;
    m.attr("blocks") = kBlocks;
#elif defined(REGNET_CUDA)
    m.attr("architectures") = REGNET_ARCHITECTURES;
    m.attr("toolkit") = REGNET_TOOLKIT;  // a driver older than its major version does not run this module
#else
    m.def("supports_v3", &supports_v3);
#endif
}
