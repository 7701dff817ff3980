// Outputs of trained networks in double, with rows on the lanes. A sum adds the inputs in their order, and the bias
// last, so the bits of a row depend neither on the other rows nor on the vector width.
#pragma once
#include <algorithm>
#include <vector>

#include "activations.h"
#include "interface.h"

// theta is [members, parameters], alpha and c are [members, depth - 1], x is [rows, in], found [members, rows, out]
#define EVALUATION(FIELD)        \
  FIELD(int64_t, members)        \
  FIELD(int64_t, depth)          \
  FIELD(const int64_t*, widths)  \
  FIELD(const char*, activation) \
  FIELD(int64_t, parameters)     \
  FIELD(int64_t, rows)           \
  FIELD(const double*, theta)    \
  FIELD(const double*, alpha)    \
  FIELD(const double*, c)        \
  FIELD(const double*, x)        \
  FIELD(double*, found)
STRUCT(Evaluation, EVALUATION)

namespace outputs {

constexpr int64_t ROWS = 64;  // evaluated together, so that their units stay in the first-level cache
constexpr int PAIR = 2;       // vectors of rows of a tile

// units [o, o + M) of a layer on ROWS rows: to = f(weight from + bias)
template <int M, class Function>
static inline void tile(const double* weight, const double* bias, int64_t inputs, int64_t o, const Wide* from, Wide* to,
                        Wide alpha, Wide c) {
  for (int64_t r = 0; r < ROWS / WIDE; r += PAIR) {
    Wide sum[M][PAIR] = {};
    for (int64_t i = 0; i < inputs; ++i)
      for (int m = 0; m < M; ++m)
        for (int p = 0; p < PAIR; ++p)
          sum[m][p] = fused(Wide{} + weight[(o + m) * inputs + i], from[i * (ROWS / WIDE) + r + p], sum[m][p]);
    for (int m = 0; m < M; ++m)
      for (int p = 0; p < PAIR; ++p) {
        Wide slope;
        Function::apply(sum[m][p] + bias[o + m], alpha, c, to[(o + m) * (ROWS / WIDE) + r + p], slope);
      }
  }
}

template <class Function>
static void layer(const double* weight, const double* bias, int64_t inputs, int64_t units, const Wide* from, Wide* to,
                  double alpha, double c) {
  const Wide alphas = number<Wide>(alpha), cs = number<Wide>(c);
  int64_t o = 0;
  for (; o + 4 <= units; o += 4) tile<4, Function>(weight, bias, inputs, o, from, to, alphas, cs);
  for (; o < units; ++o) tile<1, Function>(weight, bias, inputs, o, from, to, alphas, cs);
}

using Forward = decltype(&layer<Identity>);

// Write the outputs of all members for all rows; return 0 if the activation is not straight.
static int64_t evaluate(const Evaluation& task) {
  const auto forward = pick_activation<Forward>(task.activation, [](auto entry) -> Forward {
    if constexpr (entry.straight) return layer<typename decltype(entry)::Function>;
    return nullptr;
  });
  if (!forward) return 0;
  const int64_t depth = task.depth, rows = task.rows;
  const int64_t* widths = task.widths;
  const int64_t inputs = widths[0], units = widths[depth], widest = *std::max_element(widths, widths + depth + 1);
  std::vector<double> room((inputs + 2 * widest) * ROWS + WIDE);
  const auto address = reinterpret_cast<uintptr_t>(room.data());
  double* start = room.data() + (-address % sizeof(Wide)) / sizeof(double);
  double* buffers[2] = {start + inputs * ROWS, start + (inputs + widest) * ROWS};
  for (int64_t first = 0; first < rows; first += ROWS) {
    const int64_t count = std::min(ROWS, rows - first);  // the padding of the last block is never used
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < inputs; ++i) start[i * ROWS + r] = task.x[(first + r) * inputs + i];
    for (int64_t member = 0; member < task.members; ++member) {
      const double *weight = task.theta + member * task.parameters, *from = start;
      for (int64_t l = 0; l < depth; ++l) {
        const double* bias = weight + widths[l] * widths[l + 1];
        const int64_t shape = member * (depth - 1) + l;
        const bool last = l == depth - 1;
        (last ? layer<Identity> : forward)(weight, bias, widths[l], widths[l + 1],
                                                  reinterpret_cast<const Wide*>(from),
                                                  reinterpret_cast<Wide*>(buffers[l % 2]), last ? 0 : task.alpha[shape],
                                                  last ? 0 : task.c[shape]);
        from = buffers[l % 2];
        weight = bias + widths[l + 1];
      }
      double* out = task.found + (member * rows + first) * units;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t o = 0; o < units; ++o) out[r * units + o] = from[o * ROWS + r];
    }
  }
  return 1;
}

}  // namespace outputs

extern "C" int64_t plunit_outputs(const Evaluation* task) {
  return guarded([=] { return outputs::evaluate(*task); });
}
