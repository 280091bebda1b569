#pragma once
// Numbers on which arithmetic is done at once: samples side by side, as many as a register holds, or one alone.
#include <cstdint>
#include <cstring>
#include "regnet/macros.hpp"
#if defined(REGNET_PACKS) && defined(__SSE2__)
#include <immintrin.h>
#endif
namespace regnet {

constexpr int power_of_two(int n) { int p = 1; while (p < n) p *= 2; return p; }

// One number, with the names of a pack.
template <class T> struct OneOf {
    static constexpr int size = 1;
    using V = T;
    REGNET_HD static T iota() { return 0; }
    REGNET_HD static T load(const T* from, int64_t, int) { return *from; }
    REGNET_HD static void store(T* to, int64_t, int, T v) { *to = v; }
};

#ifdef REGNET_PACKS
template <class T, int L> struct LaneOf { typedef T type __attribute__((vector_size(L * sizeof(T)))); };

#ifdef __AVX2__
constexpr int kHalves = 2;  // of 16 bytes
#else
constexpr int kHalves = 1;
#endif

template <class T> struct PackOf {
    static constexpr int size = kHalves * 16 / sizeof(T);
    using V = typename LaneOf<T, size>::type;
    using Ints = typename LaneOf<int, size>::type;
    using Mask = decltype(V{} < V{});

    REGNET_HD static V iota() {
        V v;
        for (int s = 0; s < size; ++s) v[s] = T(s);
        return v;
    }
    // `used` numbers `step` apart; the others are 0.
    REGNET_HD static V load(const T* from, int64_t step, int used) {
        V v{};
        if (used == size && step == 1) std::memcpy(&v, from, sizeof v);
        else for (int s = 0; s < used; ++s) v[s] = from[s * step];
        return v;
    }
    REGNET_HD static void store(T* to, int64_t step, int used, V v) {
        if (used == size && step == 1) std::memcpy(to, &v, sizeof v);
        else for (int s = 0; s < used; ++s) to[s * step] = v[s];
    }
    REGNET_HD static bool any(Mask mask) {
        const auto words = (typename LaneOf<int64_t, 2 * kHalves>::type)mask;
        int64_t any = words[0] | words[1];
        if constexpr (kHalves == 2) any |= words[2] | words[3];
        return any != 0;
    }
};

// Writes memory that is not read soon, past the caches: its lines need not be fetched to be overwritten, which is a third
// to a half of the traffic.  `to` is aligned like V; other threads see it after fence_past_caches.
template <class V> inline void store_past_caches(void* to, const V& v) {
#if defined(__AVX__)
    static_assert(sizeof v == 32);
    _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
#elif defined(__SSE2__)
    __m128i part[sizeof v / 16];
    std::memcpy(part, &v, sizeof v);
    for (size_t i = 0; i < sizeof v / 16; ++i) _mm_stream_si128(static_cast<__m128i*>(to) + i, part[i]);
#else
    std::memcpy(to, &v, sizeof v);
#endif
}
inline void fence_past_caches() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

// Places of the vector a followed by the vector b.
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define REGNET_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define REGNET_JOIN(V, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef REGNET_SHUFFLE  // GCC before 12
#define REGNET_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a < b){__VA_ARGS__})
#define REGNET_JOIN(V, a, b, ...) join<V>(a, b)
template <class V, class Half> REGNET_HD V join(Half a, Half b) {
    V v;
    std::memcpy(&v, &a, sizeof a);
    std::memcpy(reinterpret_cast<char*>(&v) + sizeof a, &b, sizeof b);
    return v;
}
#endif
// Of each 16 bytes of a and of b: the numbers at even places, or at odd ones.
template <class T> REGNET_HD typename PackOf<T>::V evens(typename PackOf<T>::V a, typename PackOf<T>::V b) {
    constexpr int size = PackOf<T>::size;
    if constexpr (size == 8) return REGNET_SHUFFLE(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
    else if constexpr (sizeof(T) == 4) return REGNET_SHUFFLE(a, b, 0, 2, 4, 6);
    else if constexpr (size == 4) return REGNET_SHUFFLE(a, b, 0, 4, 2, 6);
    else return REGNET_SHUFFLE(a, b, 0, 2);
}
template <class T> REGNET_HD typename PackOf<T>::V odds(typename PackOf<T>::V a, typename PackOf<T>::V b) {
    constexpr int size = PackOf<T>::size;
    if constexpr (size == 8) return REGNET_SHUFFLE(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
    else if constexpr (sizeof(T) == 4) return REGNET_SHUFFLE(a, b, 1, 3, 5, 7);
    else if constexpr (size == 4) return REGNET_SHUFFLE(a, b, 1, 5, 3, 7);
    else return REGNET_SHUFFLE(a, b, 1, 3);
}
// 16 bytes from p[offset[m]], and where a pack has two halves as many of the sample at the same place of the other half.
template <class T, class Offset>
REGNET_HD typename PackOf<T>::V piece_of(const T* p, const Offset* offset, int m) {
    typedef T Piece __attribute__((vector_size(16)));
    Piece low;
    std::memcpy(&low, p + offset[m], sizeof low);
    if constexpr (kHalves == 1) {
        return low;
    } else {
        Piece high;
        std::memcpy(&high, p + offset[PackOf<T>::size / 2 + m], sizeof high);
        if constexpr (sizeof(T) == 4) return REGNET_JOIN(typename PackOf<T>::V, low, high, 0, 1, 2, 3, 4, 5, 6, 7);
        else return REGNET_JOIN(typename PackOf<T>::V, low, high, 0, 1, 2, 3);
    }
}
#undef REGNET_SHUFFLE
#undef REGNET_JOIN

// v[i][s] = p[offset[s] + i]: P adjacent numbers of each sample, turned so that samples lie side by side.  Read in
// pieces of at most 16 bytes, the samples of one half of the pack into one half of a vector, so that nothing crosses.
template <int P, class T, class Offset>
REGNET_HD void read_turned(const T* p, const Offset* offset, typename PackOf<T>::V* v) {
    using V = typename PackOf<T>::V;
    constexpr int size = PackOf<T>::size, Q = 16 / sizeof(T);  // also the samples of a half
    if constexpr (P == 1) {
        for (int s = 0; s < size; ++s) v[0][s] = p[offset[s]];
    } else if constexpr (P == 2 && Q == 4) {  // a pair of floats moves like one double
        using Pairs = typename LaneOf<double, size / 2>::type;
        Pairs ab[2];
#pragma GCC unroll 2
        for (int m = 0; m < 2; ++m)
#pragma GCC unroll 4
            for (int i = 0; i < size / 2; ++i) {
                double pair;
                std::memcpy(&pair, p + offset[i / 2 * 4 + 2 * m + i % 2], 8);
                ab[m][i] = pair;
            }
        v[0] = evens<T>((V)ab[0], (V)ab[1]);
        v[1] = odds<T>((V)ab[0], (V)ab[1]);
    } else {
#pragma GCC unroll 2
        for (int q = 0; q < P; q += Q) {
            V r[Q];
#pragma GCC unroll 4
            for (int m = 0; m < Q; ++m) r[m] = piece_of<T>(p + q, offset, m);
            if constexpr (Q == 4) {
                const V e01 = evens<T>(r[0], r[1]), e23 = evens<T>(r[2], r[3]), o01 = odds<T>(r[0], r[1]), o23 = odds<T>(r[2], r[3]);
                v[0] = evens<T>(e01, e23), v[1] = evens<T>(o01, o23), v[2] = odds<T>(e01, e23), v[3] = odds<T>(o01, o23);
            } else {
                v[q] = evens<T>(r[0], r[1]), v[q + 1] = odds<T>(r[0], r[1]);
            }
        }
    }
}
#endif  // REGNET_PACKS
}  // namespace regnet
