// Products of small matrices with many samples. Samples are on the lanes: a matrix [n, stride] has a row for each
// feature. Sums over samples keep 16 partial sums, whatever the vector width, so the order of their terms is fixed.
#pragma once
#include "vector.h"

constexpr int64_t SIXTEEN = 16;
constexpr int PARTS = SIXTEEN / LANES;
constexpr int SUMS = 4;  // rows of sums that are kept in registers

// The sum of 16 numbers, halves first.
static inline float folded(const float* sums) {
  float a[8], b[4];
  for (int i = 0; i < 8; ++i) a[i] = sums[i] + sums[i + 8];
  for (int i = 0; i < 4; ++i) b[i] = a[i] + a[i + 4];
  return (b[0] + b[2]) + (b[1] + b[3]);
}

// 16 partial sums over samples, kept in memory from chunk to chunk.
static inline void add_to(float* sums, const Vec (&part)[PARTS]) {
  for (int p = 0; p < PARTS; ++p) store(sums + p * LANES, load(sums + p * LANES) + part[p]);
}

// y[i] = sum_j w[i, j] x[j] + start[i] for rows i, ..., i + M - 1 of n; w has strides (row, column). N is n, or 0 if n
// is known at run time only.
template <int M, int N>
static inline void mapped_rows(const float* w, int64_t row, int64_t column, const float* start, const float* x,
                               float* y, int64_t i, int64_t features, int64_t stride, int64_t samples) {
  const int64_t n = N ? N : features;
  for (int64_t s = 0; s < samples; s += SIXTEEN) {
    Vec sum[M][PARTS];
    for (int m = 0; m < M; ++m)
      for (int p = 0; p < PARTS; ++p) sum[m][p] = splat(start ? start[i + m] : 0.0f);
#pragma GCC unroll 4
    for (int64_t j = 0; j < n; ++j) {
      Vec from[PARTS];
      for (int p = 0; p < PARTS; ++p) from[p] = load(x + j * stride + s + p * LANES);
      for (int m = 0; m < M; ++m) {
        const Vec factor = splat(w[(i + m) * row + j * column]);
        for (int p = 0; p < PARTS; ++p) sum[m][p] = fused(factor, from[p], sum[m][p]);
      }
    }
    for (int m = 0; m < M; ++m)
      for (int p = 0; p < PARTS; ++p) store(y + (i + m) * stride + s + p * LANES, sum[m][p]);
  }
}

// y = w x + start, rows i to n: M at a time, and the rest with M halved again and again.
template <int N, int M>
static inline void mapped_from(const float* w, int64_t row, int64_t column, const float* start, const float* x,
                               float* y, int64_t i, int64_t features, int64_t stride, int64_t samples) {
  const int64_t n = N ? N : features;
  for (; i + M <= n; i += M) mapped_rows<M, N>(w, row, column, start, x, y, i, n, stride, samples);
  if constexpr (M > 1) mapped_from<N, M / 2>(w, row, column, start, x, y, i, n, stride, samples);
}

// y = w x + start, n rows.
template <int N>
static void mapped(const float* w, int64_t row, int64_t column, const float* start, const float* x, float* y,
                   int64_t features, int64_t stride, int64_t samples) {
  mapped_from<N, SUMS>(w, row, column, start, x, y, 0, features, stride, samples);
}

// sums[i, j] += sum over samples of g[i] x[j], for a tile of I x J; sums are [n, n, 16].
template <int I, int J>
static inline void crossed_tile(const float* g, const float* x, float* sums, int64_t i, int64_t j, int64_t n,
                                int64_t stride, int64_t samples) {
  Vec sum[I][J][PARTS] = {};
  for (int64_t s = 0; s < samples; s += SIXTEEN)
    for (int p = 0; p < PARTS; ++p) {
      Vec left[I];
      for (int a = 0; a < I; ++a) left[a] = load(g + (i + a) * stride + s + p * LANES);
      for (int b = 0; b < J; ++b) {
        const Vec right = load(x + (j + b) * stride + s + p * LANES);
        for (int a = 0; a < I; ++a) sum[a][b][p] = fused(left[a], right, sum[a][b][p]);
      }
    }
  for (int a = 0; a < I; ++a)
    for (int b = 0; b < J; ++b) add_to(sums + ((i + a) * n + j + b) * SIXTEEN, sum[a][b]);
}

template <int I, int J>
static inline void crossed_columns(const float* g, const float* x, float* sums, int64_t i, int64_t j, int64_t n,
                                   int64_t stride, int64_t samples) {
  for (; j + J <= n; j += J) crossed_tile<I, J>(g, x, sums, i, j, n, stride, samples);
  if constexpr (J > 1) crossed_columns<I, J / 2>(g, x, sums, i, j, n, stride, samples);
}

template <int I>
static inline void crossed_rows(const float* g, const float* x, float* sums, int64_t i, int64_t n, int64_t stride,
                                int64_t samples) {
  for (; i + I <= n; i += I) crossed_columns<I, 4>(g, x, sums, i, 0, n, stride, samples);
  if constexpr (I > 1) crossed_rows<I / 2>(g, x, sums, i, n, stride, samples);
}

static void crossed(const float* g, const float* x, float* sums, int64_t n, int64_t stride, int64_t samples) {
  crossed_rows<SUMS / 2>(g, x, sums, 0, n, stride, samples);
}
