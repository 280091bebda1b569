#pragma once
// How functors are run on the CPU: samples by rows, targets by slabs, lines by bundles.
#include <algorithm>
#include <cstdint>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "regnet/sampling.hpp"
namespace regnet {

// A large new result would come page by page, a fault each, at more cost than the sampling: ask for large pages.
inline void in_large_pages(void* data, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = 1 << 21;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + uintptr_t(bytes)) / page * page;
    if (end > begin + page) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

struct Cpu {
    int threads;
    int64_t grain;  // voxels; a team costs more to wake than a small loop to run
    // One thread opens no parallel region at all, which keeps forked workers safe.
    int team(int64_t voxels) const { return int(std::max<int64_t>(1, std::min<int64_t>(threads, voxels / grain))); }
};

// The samples of a call, cut into segments of rows along the last axis.
template <int D>
struct Segments {
    static constexpr int64_t length = 4096;  // long enough to be cheap, short enough to share a 1-D signal
    int64_t batch, size[D], per_row, per_batch;

    template <class V>
    explicit Segments(const V& samples) : batch(samples.batch) {
        for (int d = 0; d < D; ++d) size[d] = samples.size[d];
        per_row = (size[D - 1] + length - 1) / length;
        per_batch = per_row;
        for (int d = 0; d + 1 < D; ++d) per_batch *= size[d];
    }
    int64_t voxels() const {
        int64_t n = batch;
        for (int d = 0; d < D; ++d) n *= size[d];
        return n;
    }
    struct Segment { int64_t position[D], begin, end; };
    Segment operator[](int64_t i) const {
        Segment s;
        s.begin = i % per_row * length;
        s.end = std::min(s.begin + length, size[D - 1]);
        i /= per_row;
        s.position[D - 1] = 0;
        for (int d = D - 2; d >= 0; --d) { s.position[d] = i % size[d]; i /= size[d]; }
        return s;
    }
};

// Independent samples: any order, any thread.
template <int D, class T, class Kernel>
void for_samples(Cpu cpu, const Kernel& kernel) {
    const Segments<D> segments(kernel.samples());
    const int team = cpu.team(segments.voxels());
    const int64_t count = segments.batch * segments.per_batch;
    in_large_pages(kernel.out.data, kernel.out.channels * segments.voxels() * int64_t(sizeof(*kernel.out.data)));
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        const Kernel local = kernel;  // a copy whose address nobody else has stays in registers
        const auto segment = segments[i % segments.per_batch];
        const auto row = local.row(i / segments.per_batch, segment.position);
        run<D, T>(local, row, segment.begin, segment.end);
    }
}

// Samples that add into a target.  Each task owns a slab of the target's first axis, walks the samples in index
// order and keeps what falls into its slab, so the order of every sum is the serial one and the result has the same
// bits for any number of threads.  Segments that miss a slab are skipped.
template <int D, class T, class Kernel>
void for_targets(Cpu cpu, const Kernel& kernel) {
    const Segments<D> segments(kernel.samples());
    const int team = cpu.team(segments.voxels());
    const int64_t batch = segments.batch, rows = kernel.grid.size[0];
    const int64_t slabs = team == 1 ? 1 : std::min<int64_t>(rows, (team + batch - 1) / batch);
    const int64_t count = batch * segments.per_batch;
    std::vector<Slab> extents(slabs > 1 ? count : 0);
    if (slabs > 1) {
#pragma omp parallel for num_threads(team) schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            const auto segment = segments[i % segments.per_batch];
            const auto row = kernel.row(i / segments.per_batch, segment.position, {0, rows});
            extents[i] = extent<D, T>(kernel, row, segment.begin, segment.end);
        }
    }
#pragma omp parallel for num_threads(team) if (team > 1) schedule(dynamic)
    for (int64_t task = 0; task < batch * slabs; ++task) {
        const Kernel local = kernel;
        const int64_t n = task / slabs, slab = task % slabs;
        const int64_t low = rows * slab / slabs, high = rows * (slab + 1) / slabs;
        for (int64_t i = 0; i < segments.per_batch; ++i) {
            if (slabs > 1) {
                const Slab& e = extents[n * segments.per_batch + i];
                if (e.high <= low || e.low >= high) continue;
            }
            const auto segment = segments[i];
            const auto row = local.row(n, segment.position, {low, high});
            run<D, T>(local, row, segment.begin, segment.end);
        }
    }
}

// Lines of a contiguous (outer, length, inner) array, a bundle at a time, to where they lie in another such array or in
// the same: kernel(line, scratch) works in place on `length` rows of W numbers, one column a line.
template <int W, class T, class Kernel>
void for_lines(Cpu cpu, const T* from, T* to, int64_t outer, int64_t length, int64_t inner, const Kernel& kernel) {
    const int64_t lines = outer * inner, bundles = (lines + W - 1) / W;
    const int team = cpu.team(lines * length);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        std::vector<T> block(length * W), scratch(kernel.needs_scratch ? length * W : 0);
#pragma omp for schedule(static)
        for (int64_t b = 0; b < bundles; ++b) {
            int64_t start[W];
            const int64_t used = std::min<int64_t>(W, lines - b * W);
            for (int64_t w = 0; w < W; ++w) {
                const int64_t line = b * W + std::min(w, used - 1);  // the last bundle repeats its last line
                start[w] = line / inner * length * inner + line % inner;
            }
            const bool adjacent = used == W && start[W - 1] - start[0] == W - 1;
            if (adjacent) for (int64_t k = 0; k < length; ++k) std::copy_n(from + start[0] + k * inner, W, &block[k * W]);
            else for (int64_t w = 0; w < W; ++w) for (int64_t k = 0; k < length; ++k) block[k * W + w] = from[start[w] + k * inner];
            kernel(block.data(), scratch.data());
            if (adjacent) for (int64_t k = 0; k < length; ++k) std::copy_n(&block[k * W], W, to + start[0] + k * inner);
            else for (int64_t w = 0; w < used; ++w) for (int64_t k = 0; k < length; ++k) to[start[w] + k * inner] = block[k * W + w];
        }
    }
}
}  // namespace regnet
