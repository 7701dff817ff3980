// A vector of doubles, and a * b + c of it, rounded once where the processor can.
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
