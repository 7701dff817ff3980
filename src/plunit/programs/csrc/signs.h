// max over signs of sum_s |base_s + sum_u sign_u row_us|: what a sum of forms can reach if each may be added or
// subtracted. The signs are chosen row by row, the largest first; the triangle inequality bounds the rest, and a branch
// is dropped if it cannot exceed the best so far, or a floor below which nothing matters. plunit.pieces.fixed.zonotopes
// does the same in NumPy, for only a few of the largest rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "interface.h"

// base [cases, columns], rows [cases, count, columns]; bound [cases] is at least the floor
#define SIGN_TASK(FIELD)      \
  FIELD(int64_t, cases)       \
  FIELD(int64_t, count)       \
  FIELD(int64_t, columns)     \
  FIELD(const double*, base)  \
  FIELD(const double*, rows)  \
  FIELD(const double*, floor) \
  FIELD(double*, bound)
STRUCT(SignTask, SIGN_TASK)

namespace {

constexpr int64_t VISITS = 4096;  // branches of a case; after these, the triangle inequality bounds the rest

class Signs {
 public:
  explicit Signs(const SignTask& task)
      : q(task), order(q.count), left(q.count + 1), sums((q.count + 1) * q.columns), sizes(q.count) {}

  void run(int64_t i) {
    rows = q.rows + i * q.count * q.columns;
    for (int64_t u = 0; u < q.count; ++u) sizes[u] = size(rows + u * q.columns);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) { return sizes[a] > sizes[b]; });
    left[q.count] = 0;
    for (int64_t u = q.count; u-- > 0;) left[u] = left[u + 1] + sizes[order[u]];
    std::copy_n(q.base + i * q.columns, q.columns, sums.begin());
    const double start = size(sums.data());
    best = q.floor[i];
    visits = 0;
    visit(0, start);
    // a sum of n numbers is off by less than n epsilon times the sum of their sizes
    const double rounding = static_cast<double>(q.columns + q.count + 8) * std::numeric_limits<double>::epsilon();
    q.bound[i] = best + std::max(1e-12, rounding) * (start + left[0]);
  }

 private:
  const SignTask& q;
  const double* rows = nullptr;
  std::vector<int64_t> order;
  std::vector<double> left, sums, sizes;
  double best = 0;
  int64_t visits = 0;

  double size(const double* row) const {
    double sum = 0;
    for (int64_t s = 0; s < q.columns; ++s) sum += std::fabs(row[s]);
    return sum;
  }

  // `reached` is the size of the sum of the first `depth` rows with their signs
  void visit(int64_t depth, double reached) {
    const double most = reached + left[depth];
    if (!(most > best)) return;
    if (left[depth] == 0 || ++visits > VISITS) {
      best = most;
      return;
    }
    const double *row = rows + order[depth] * q.columns, *sum = &sums[depth * q.columns];
    double* next = &sums[(depth + 1) * q.columns];
    double plus = 0, minus = 0;
    for (int64_t s = 0; s < q.columns; ++s) plus += std::fabs(sum[s] + row[s]), minus += std::fabs(sum[s] - row[s]);
    for (const double sign : {plus >= minus ? 1.0 : -1.0, plus >= minus ? -1.0 : 1.0}) {
      const double now = sign > 0 ? plus : minus;
      if (!(now + left[depth + 1] > best)) continue;
      for (int64_t s = 0; s < q.columns; ++s) next[s] = sum[s] + sign * row[s];
      visit(depth + 1, now);
    }
  }
};

}  // namespace
