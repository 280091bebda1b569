#pragma once
// What the core uses of the standard library, for NVRTC, which has none: it stands in for <cmath>, <limits> and so on.
// Constructors are compiled but not run there, so much of it is declared only.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;  // as on 64-bit Linux
using uint64_t = unsigned long;
using size_t = unsigned long;
namespace std {
using ::ceil, ::fabs, ::floor, ::llrint, ::nextafter, ::size_t;
template <class T> struct numeric_limits;
template <> struct numeric_limits<int> { static constexpr int max() { return 0x7fffffff; } };
template <> struct numeric_limits<int64_t> { static constexpr int64_t max() { return 0x7fffffffffffffff; } };
template <> struct numeric_limits<float> {
    static constexpr float infinity() { return __int_as_float(0x7f800000); }
    static float quiet_NaN() { return __int_as_float(0x7fc00000); }
};
template <> struct numeric_limits<double> {
    static constexpr double infinity() { return __longlong_as_double(0x7ff0000000000000); }
    static double quiet_NaN() { return __longlong_as_double(0x7ff8000000000000); }
};
template <class T, size_t N> struct array {
    T values[N];
    const T& operator[](size_t i) const { return values[i]; }
};
}  // namespace std
