// Double precision: a vector of doubles with a * b + c, rounded once where the processor can, and the functions of
// vector.h for a single double, which compilers vectorise.
#pragma once
#include "vector.h"

constexpr int WIDE = LANES / 2;

typedef double Wide __attribute__((vector_size(8 * WIDE)));

static inline Wide fused(Wide a, Wide b, Wide c) {
#if defined(__AVX512F__)
  return (Wide)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (Wide)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (Wide)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(PLUNIT_FUSED)
  Wide r;
  for (int lane = 0; lane < WIDE; ++lane) r[lane] = std::fma(a[lane], b[lane], c[lane]);
  return r;
#else
  return a * b + c;
#endif
}

template <>
inline double number<double>(double value) {
  return value;
}
template <>
inline Wide number<Wide>(double value) {
  return Wide{} + value;
}

// p is the Taylor polynomial of degree 13 of exp. For x <= 709.
template <>
struct Exponential<double> {
  double scale, rest;
  explicit Exponential(double x) {
    const double round = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no bits below one
    x = x < -708.0 ? -708.0 : x;
    const double shifted = x * 1.4426950408889634 + round, n = shifted - round;
    const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    rest = r + (r * r) * p;
    int64_t bits, half;
    std::memcpy(&bits, &shifted, 8);
    std::memcpy(&half, &round, 8);
    bits = (bits - half + 1023) << 52;
    std::memcpy(&scale, &bits, 8);
  }
  double value() const { return scale + scale * rest; }
  double minus_one() const { return value() - 1.0; }
};

static inline double hyperbolic_tangent(double x) {
  const double e = Exponential(-2.0 * std::fabs(x)).value(), size = (1.0 - e) / (1.0 + e);
  return x < 0 ? -size : size;
}

static inline double normal_distribution(double x, double) { return 0.5 + 0.5 * std::erf(x * 0.70710678118654752440); }
