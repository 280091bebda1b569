// Included by vote.cpp: the entry point, written once for every device.
#include "regnet/vote.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
// f(label, has_sign): an unsigned number of the labels' width, whatever they are.
template <class F>
void by_label(DType t, F&& f) {
    switch (t) {
        case DType::u8: case DType::i8: return f(uint8_t{}, t == DType::i8);
        case DType::u16: case DType::i16: return f(uint16_t{}, t == DType::i16);
        case DType::u32: case DType::i32: return f(uint32_t{}, t == DType::i32);
        case DType::u64: case DType::i64: return f(uint64_t{}, t == DType::i64);
        default: throw std::invalid_argument("labels must be integers");
    }
}
template <class Device>
void vote(Device device, const TensorRef& labels, const Where& where, const TensorRef& out, int order, int64_t background) {
    by_dim(labels.dim(), [&](auto dim) {
        by_dtype(where.coords.dtype, [&](auto zero) {
            by_label(labels.dtype, [&](auto label, bool has_sign) {
                constexpr int D = decltype(dim)::value;
                using T = decltype(zero);
                using L = decltype(label);
                const L sign = has_sign ? L(L(1) << (8 * sizeof(L) - 1)) : L(0);
                const auto run = [&](auto order) {
                    constexpr int Order = decltype(order)::value;
                    const int orders[] = {Order, Order, Order};
                    const Bound bounds[] = {Bound::replicate, Bound::replicate, Bound::replicate};
                    for_samples<D, T>(device, Vote<D, Order, L, T>{
                        View<D, const L>(labels), Coords<D, T>(where.coords, where.relative, where.matrix), View<D, L>(out),
                        Interp<D, T>(orders, bounds, Extrapolate::edge, labels.shape.data() + 2, 0), L(background), sign});
                };
                if (order == 0) run(Int<0>{});
                else run(Int<1>{});
            });
        });
    });
}
}  // namespace regnet
