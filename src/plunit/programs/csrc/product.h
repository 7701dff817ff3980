// C[m, n] = end(start[m, n] + sum_k A[m, k] B[n, k]) on vectors of members, blocks of C kept in registers.
// The order of the terms of an element depends only on the shape of C.
#pragma once
#include "vector.h"

struct Matrix {
  Vec* at;
  int64_t row, column;  // strides
};

static inline Matrix at(Matrix m, int64_t row, int64_t column) {
  return {m.at + row * m.row + column * m.column, m.row, m.column};
}

// What is done with a sum: here it is stored.
struct Keep {
  Matrix c;
  void operator()(int64_t row, int64_t column, Vec sum) const { c.at[row * c.row + column * c.column] = sum; }
};

// Load a value only once; compilers would load it again for each product.
static inline Vec held(Vec x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#endif
  return x;
}

// A small number of sums is split into K parts, because each addition waits for the one before it.
template <int M, int N, class End>
static inline void tile(End end, Matrix start, Matrix a, int64_t m, Matrix b, int64_t n, int64_t terms) {
  constexpr int K = M * N >= 8 ? 1 : M * N >= 4 ? 2 : 4;
  start = at(start, m, n);
  Vec sum[K][M][N] = {};
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) sum[0][i][j] = start.at[i * start.row + j * start.column];
  const Vec *left = at(a, m, 0).at, *right = at(b, n, 0).at;
  int64_t k = 0;
  for (; k + K <= terms; k += K, left += K * a.column, right += K * b.column)
#pragma GCC unroll 4
    for (int s = 0; s < K; ++s) {
      Vec factor[M];
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) factor[i] = left[s * a.column + i * a.row];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        const Vec other = held(right[s * b.column + j * b.row]);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) sum[s][i][j] = fused(factor[i], other, sum[s][i][j]);
      }
    }
  for (; K > 1 && k < terms; ++k, left += a.column, right += b.column)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) sum[0][i][j] = fused(left[i * a.row], right[j * b.row], sum[0][i][j]);
  for (int s = 1; s < K; ++s)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) sum[0][i][j] += sum[s][i][j];
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) end(m + i, n + j, sum[0][i][j]);
}

template <int N, class End>
static inline void strip(End end, Matrix start, Matrix a, int64_t rows, Matrix b, int64_t n, int64_t terms) {
  int64_t m = 0;
  for (; m + 3 <= rows; m += 3) tile<3, N>(end, start, a, m, b, n, terms);
  if (rows - m == 2) tile<2, N>(end, start, a, m, b, n, terms);
  if (rows - m == 1) tile<1, N>(end, start, a, m, b, n, terms);
}

// for columns that are a multiple of 4
template <class End>
static inline void product_by_4(End end, Matrix start, Matrix a, int64_t rows, Matrix b, int64_t columns, int64_t terms) {
  for (int64_t n = 0; n < columns; n += 4) strip<4>(end, start, a, rows, b, n, terms);
}

template <class End>
static inline void product(End end, Matrix start, Matrix a, int64_t rows, Matrix b, int64_t columns, int64_t terms) {
  const int64_t n = columns / 4 * 4;
  product_by_4(end, start, a, rows, b, n, terms);
  if (columns - n == 3) strip<3>(end, start, a, rows, b, n, terms);
  if (columns - n == 2) strip<2>(end, start, a, rows, b, n, terms);
  if (columns - n == 1) strip<1>(end, start, a, rows, b, n, terms);
}
