#pragma once
// Entry points of the core, the same for every device.
#include "regnet/stencil.hpp"
#include "regnet/tensor.hpp"
namespace regnet {

struct Options {
    int order[3];
    Bound bound[3];
    Extrapolate extrapolate;
    double nowhere;  // the value of a sample whose coordinate is NaN
};
struct Where {  // coordinates: (N, D, *out); relative to the voxel itself or not; matrix (N, D, D + 1) or data == null
    TensorRef coords;
    bool relative;
    TensorRef matrix;
};

template <class Device> void sample(Device, int k, const TensorRef& coeff, const Where&, const TensorRef& out, const Options&);
template <class Device> void contract(Device, int k, const TensorRef& coeff, const Where&, const TensorRef& value, const TensorRef& out, const Options&);
template <class Device> void scatter(Device, int k, const TensorRef& value, const Where&, const TensorRef& target, const Options&);
// The same into whole numbers (int64), to which values are rounded: their sums do not depend on the order.
template <class Device> void scatter_whole(Device, int k, const TensorRef& value, const Where&, const TensorRef& target, const Options&);
template <class Device> void vote(Device, const TensorRef& labels, const Where&, const TensorRef& out, int order, int64_t background);

// Along one axis of a contiguous tensor, to another or in place.  On a GPU, where the core allocates nothing, the caller lends a
// workspace: for the filter 2 n (order + 1) doubles, for the sum as much as the image takes.
template <class Device> void prefilter(Device, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int order, Bound, bool adjoint);
template <class Device> void box_sum(Device, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int64_t window);

// Along one axis of contiguous tensors: a spline sampled at regular places, or the adjoint of that.
// Sample p lies at (scale p / spacing + offset) / divisor: for whole numbers one rounding, so that a tie of order 0 stays one.
struct Ramp { double spacing, scale, offset, divisor; };
// Workspace: 2 (order + 1) doubles for each sample along the axis.
template <class Device> void lattice(Device, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int order, Bound, const Ramp&, bool adjoint);
}  // namespace regnet
