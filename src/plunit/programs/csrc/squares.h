// Levenberg-Marquardt steps in double. Each member runs on one thread, from its first sum to its last, so neither the
// other members nor the number of threads change a bit.
// A block of rows has its rows on the lanes for values and slopes, and parameters on the lanes for J^T J.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "activations.h"
#include "interface.h"

// theta is [members, parameters], alpha and c are [members, depth - 1]. x is [rows, in], y [rows, out] and weight
// [rows]; the rows of each member begin `apart` rows after those of the member before it. damping, waited and taken are
// [members].
#define SQUARES(FIELD)           \
  FIELD(int64_t, members)        \
  FIELD(int64_t, depth)          \
  FIELD(const int64_t*, widths)  \
  FIELD(const char*, activation) \
  FIELD(int64_t, parameters)     \
  FIELD(int64_t, learned)        \
  FIELD(double, limit)           \
  FIELD(int64_t, rows)           \
  FIELD(int64_t, apart)          \
  FIELD(const double*, x)        \
  FIELD(const double*, y)        \
  FIELD(const double*, weight)   \
  FIELD(const double*, alpha)    \
  FIELD(const double*, c)        \
  FIELD(int64_t, power)          \
  FIELD(double*, unit)           \
  FIELD(int64_t, steps)          \
  FIELD(int64_t, patience)       \
  FIELD(double, tolerance)       \
  FIELD(double, lift)            \
  FIELD(double, easier)          \
  FIELD(double, harder)          \
  FIELD(double, hardest)         \
  FIELD(double, floor)           \
  FIELD(double*, theta)          \
  FIELD(double*, loss)           \
  FIELD(double*, damping)        \
  FIELD(int64_t*, waited)        \
  FIELD(int64_t*, taken)
STRUCT(Squares, SQUARES)

namespace squares {

constexpr int64_t ROWS = 64;                // of a block
constexpr int64_t PANEL = 2 * WIDE;         // parameters side by side
constexpr int TALL = WIDE == 8 ? 8 : 4;     // rows of a tile of J^T J, which is kept in registers
constexpr int PIVOTS = 8;                   // rows of the factor that are eliminated from the rest together
constexpr double NEGLIGIBLE = 1e-8;        // rows with less than this fraction of the largest weight are left out

template <class Function>
static void activate(const double* z, int64_t count, double alpha, double c, double* h, double* d) {
  for (int64_t i = 0; i < count; ++i) Function::apply(z[i], alpha, c, h[i], d[i]);
}

using Activate = decltype(&activate<Identity>);

// H[p, q] += sum_k J[k, p] J[k, q] over the rows of a block, each sum in the order of k, for one tile: `left` has TALL
// columns of a panel, `right` a full panel; both are [ROWS, PANEL].
static inline void tile(const double* left, const double* right, double* to, int64_t stride) {
  Wide sum[TALL][2];
  for (int i = 0; i < TALL; ++i) std::memcpy(sum[i], to + i * stride, sizeof sum[i]);
  for (int64_t k = 0; k < ROWS; ++k, left += PANEL, right += PANEL) {
    Wide other[2];
    std::memcpy(other, right, sizeof other);
#pragma GCC unroll 8
    for (int i = 0; i < TALL; ++i) {
      const Wide factor = Wide{} + left[i];
      sum[i][0] = fused(factor, other[0], sum[i][0]);
      sum[i][1] = fused(factor, other[1], sum[i][1]);
    }
  }
  for (int i = 0; i < TALL; ++i) std::memcpy(to + i * stride, sum[i], sizeof sum[i]);
}

struct Layer {
  int64_t inputs, outputs, place;  // of its first weight
  double *z, *h, *d, *delta;       // [outputs, ROWS]
};

class Member {
  const Squares& k;
  const int64_t parameters, columns, stride;  // the last column of J is the residual; H is [stride, stride]
  const Activate activation;
  std::vector<double> room, alpha, c, trial, step;
  std::vector<double> errors;         // the largest one of each row
  std::vector<int64_t> every, large;  // rows: all, and those that count in J^T J
  double unit = 1.0;                  // of the errors whose powers are summed
  std::vector<Layer> layers;
  double *input, *root, *target, *panels, *gram, *factor;
  const double *x, *y, *weight;
  bool known = false;  // whether J^T J is that of theta

 public:
  Member(const Squares& task, Activate function)
      : k(task), parameters(task.parameters), columns(task.parameters + 1),
        stride((columns + PANEL - 1) / PANEL * PANEL), activation(function), alpha(task.depth), c(task.depth),
        trial(task.parameters), step(task.parameters), every(task.rows) {
    std::iota(every.begin(), every.end(), 0);
    int64_t units = 0, place = 0;
    for (int64_t l = 1; l <= k.depth; ++l) units += k.widths[l];
    const int64_t out = k.widths[k.depth];
    room.assign((k.widths[0] + 1 + out + 4 * units + stride) * ROWS + 2 * stride * stride + 8, 0.0);
    const auto address = reinterpret_cast<uintptr_t>(room.data());
    double* next = room.data() + (-address % 64) / sizeof(double);
    const auto take = [&](int64_t count) { return next += count, next - count; };
    panels = take(stride * ROWS);
    gram = take(stride * stride);
    factor = take(stride * stride);
    input = take(k.widths[0] * ROWS);
    target = take(out * ROWS);
    root = take(ROWS);
    for (int64_t l = 0; l < k.depth; ++l) {
      const int64_t from = k.widths[l], to = k.widths[l + 1];
      double* parts[4];
      for (double*& part : parts) part = take(to * ROWS);
      layers.push_back({from, to, place, parts[0], parts[1], parts[2], parts[3]});
      place += (from + 1) * to;
    }
  }

  // Take the steps of one member, unless it has ended.
  void run(int64_t member) {
    double *theta = k.theta + member * parameters, &loss = k.loss[member], &damping = k.damping[member];
    int64_t &waited = k.waited[member], &taken = k.taken[member];
    x = k.x + member * k.apart * k.widths[0];
    y = k.y + member * k.apart * k.widths[k.depth];
    weight = k.weight ? k.weight + member * k.apart : nullptr;
    shape(member, theta);
    known = false;
    if (!taken && k.power > 2) {
      const double most = largest(theta);
      k.unit[member] = most > 0 ? most : 1.0;
    }
    unit = k.unit[member];
    if (!taken) loss = value(theta);
    for (int64_t i = 0; i < k.steps && waited < k.patience; ++i, ++taken) {
      if (!std::isfinite(loss) || damping > k.hardest) {
        waited = k.patience;
        break;
      }
      if (!known) {
        shape(member, theta);
        normal(theta);
      }
      double found = INFINITY;
      if (solve(damping)) {
        for (int64_t j = 0; j < parameters; ++j) trial[j] = theta[j] - step[j];
        shape(member, trial.data());
        found = value(trial.data());
      }
      const bool better = found < loss;
      waited = found < loss * (1.0 - k.tolerance) ? 0 : waited + 1;
      if (better) {
        std::copy(trial.begin(), trial.end(), theta);
        loss = found;
        known = false;
      }
      damping = better ? std::max(damping * k.easier, k.floor) : damping * k.harder;
    }
  }

 private:
  // alpha and c of all layers: given, or learned
  void shape(int64_t member, const double* theta) {
    const double* raw = theta + parameters - 2 * (k.depth - 1);
    for (int64_t l = 0; l + 1 < k.depth; ++l) {
      alpha[l] = k.learned ? sigmoid(limited(raw[l])) : k.alpha[member * (k.depth - 1) + l];
      c[l] = k.learned ? Exponential(limited(raw[k.depth - 1 + l])).value() : k.c[member * (k.depth - 1) + l];
    }
  }

  double limited(double raw) const { return std::max(-k.limit, std::min(k.limit, raw)); }

  // Fetch a block of the given rows; its padding has weight 0. `root` is the square root of a row's weight in the loss.
  void fetch(const std::vector<int64_t>& some, int64_t first) {
    const int64_t in = k.widths[0], out = k.widths[k.depth], count = static_cast<int64_t>(some.size());
    const double share = 1.0 / (static_cast<double>(k.rows) * static_cast<double>(out));
    for (int64_t r = 0; r < ROWS; ++r) {
      const int64_t row = some[std::min(first + r, count - 1)];
      for (int64_t i = 0; i < in; ++i) input[i * ROWS + r] = x[row * in + i];
      for (int64_t o = 0; o < out; ++o) target[o * ROWS + r] = y[row * out + o];
      root[r] = first + r < count ? std::sqrt((weight ? weight[row] : 1.0) * share) : 0.0;
    }
  }

  void forward(const double* theta) {
    const double* from = input;
    for (int64_t l = 0; l < k.depth; ++l) {
      const Layer& layer = layers[l];
      const double *w = theta + layer.place, *bias = w + layer.inputs * layer.outputs;
      for (int64_t u = 0; u < layer.outputs; ++u) {
        double z[ROWS];
        for (int64_t r = 0; r < ROWS; ++r) z[r] = bias[u];
        for (int64_t i = 0; i < layer.inputs; ++i) {
          const double factor = w[u * layer.inputs + i], *h = from + i * ROWS;
          for (int64_t r = 0; r < ROWS; ++r) z[r] += factor * h[r];
        }
        std::copy(z, z + ROWS, layer.z + u * ROWS);
      }
      if (l + 1 < k.depth) activation(layer.z, layer.outputs * ROWS, alpha[l], c[l], layer.h, layer.d);
      from = layer.h;
    }
  }

  // the error of output o in row r of a block
  double error(int64_t o, int64_t r) const { return layers.back().z[o * ROWS + r] - target[o * ROWS + r]; }

  // |error / unit|^exponent, by squaring: the same bits everywhere
  double raised(double error, int64_t exponent) const {
    double product = 1.0, square = std::fabs(error) / unit;
    for (; exponent; exponent /= 2, square *= square)
      if (exponent % 2) product *= square;
    return product;
  }

  double value(const double* theta) {
    double lanes[ROWS] = {};
    for (int64_t first = 0; first < k.rows; first += ROWS) {
      fetch(every, first);
      forward(theta);
      for (int64_t o = 0; o < layers.back().outputs; ++o)
        for (int64_t r = 0; r < ROWS; ++r) {
          const double away = error(o, r) * root[r];
          lanes[r] += k.power > 2 ? root[r] * root[r] * raised(error(o, r), k.power) : away * away;
        }
    }
    double sum = 0;
    for (int64_t r = 0; r < ROWS; ++r) sum += lanes[r];
    return sum;
  }

  // Write the largest error of each row over the outputs, and return the largest of all.
  double largest(const double* theta) {
    double most = 0;
    errors.resize(k.rows);
    for (int64_t first = 0; first < k.rows; first += ROWS) {
      fetch(every, first);
      forward(theta);
      for (int64_t r = 0; r < std::min(ROWS, k.rows - first); ++r) {
        double& own = errors[first + r] = 0;
        for (int64_t o = 0; o < layers.back().outputs; ++o) own = std::max(own, std::fabs(error(o, r)));
        most = std::max(most, own);
      }
    }
    return most;
  }

  // The rows whose errors are not too small to count next to the largest one.
  const std::vector<int64_t>& counting(const double* theta) {
    if (k.power == 2) return every;
    const double least = largest(theta) * std::pow(NEGLIGIBLE, 1.0 / static_cast<double>(k.power - 2));
    large.clear();
    for (int64_t row = 0; row < k.rows; ++row)
      if (errors[row] >= least) large.push_back(row);
    return large;
  }

  // Set gram, above its diagonal, to [J residual]^T [J residual].
  void normal(const double* theta) {
    const std::vector<int64_t>& some = counting(theta);
    std::fill(gram, gram + stride * stride, 0.0);
    for (int64_t first = 0; first < static_cast<int64_t>(some.size()); first += ROWS) {
      fetch(some, first);
      forward(theta);
      for (int64_t o = 0; o < layers.back().outputs; ++o) {
        jacobian(theta, o);
        for (int64_t q = 0; q < stride; q += PANEL)
          for (int64_t p = 0; p < q + PANEL; p += TALL)
            tile(panels + p / PANEL * PANEL * ROWS + p % PANEL, panels + q * ROWS, gram + p * stride + q, stride);
      }
    }
    known = true;
  }

  // column j of the rows of a block
  double* column(int64_t j) const { return panels + j / PANEL * PANEL * ROWS + j % PANEL; }

  // Write the slopes of output o in all parameters, and the residual, of the rows of a block.
  void jacobian(const double* theta, int64_t o) {
    const Layer& last = layers.back();
    double *residual = column(parameters), share[ROWS];
    for (int64_t r = 0; r < ROWS; ++r) {
      share[r] = k.power > 2 ? root[r] * std::sqrt(raised(error(o, r), k.power - 2)) : root[r];
      residual[r * PANEL] = error(o, r) * share[r] / static_cast<double>(k.power - 1);
    }
    for (int64_t u = 0; u < last.outputs; ++u)
      for (int64_t r = 0; r < ROWS; ++r) last.delta[u * ROWS + r] = u == o ? share[r] : 0.0;
    for (int64_t l = k.depth - 1; l >= 0; --l) {
      const Layer& layer = layers[l];
      weights(layer, l ? layers[l - 1].h : input);
      if (l) pull(theta, l);
    }
  }

  void weights(const Layer& layer, const double* h) {
    for (int64_t u = 0; u < layer.outputs; ++u) {
      const double* delta = layer.delta + u * ROWS;
      for (int64_t i = 0; i <= layer.inputs; ++i) {
        const bool bias = i == layer.inputs;
        double* to = column(layer.place + (bias ? layer.outputs * layer.inputs + u : u * layer.inputs + i));
        const double* from = h + i * ROWS;
        for (int64_t r = 0; r < ROWS; ++r) to[r * PANEL] = bias ? delta[r] : delta[r] * from[r];
      }
    }
  }

  // delta of layer l - 1 from that of layer l; the slopes in raw alpha and raw c, if they are learned
  void pull(const double* theta, int64_t l) {
    const Layer &layer = layers[l], &below = layers[l - 1];
    const double *w = theta + layer.place, a = alpha[l - 1], b = c[l - 1];
    double in_alpha[ROWS] = {}, in_c[ROWS] = {};
    for (int64_t u = 0; u < below.outputs; ++u) {
      double pulled[ROWS] = {};
      for (int64_t v = 0; v < layer.outputs; ++v) {
        const double factor = w[v * layer.inputs + u], *delta = layer.delta + v * ROWS;
        for (int64_t r = 0; r < ROWS; ++r) pulled[r] += factor * delta[r];
      }
      const double *z = below.z + u * ROWS, *d = below.d + u * ROWS;
      for (int64_t r = 0; r < ROWS; ++r) below.delta[u * ROWS + r] = pulled[r] * d[r];
      for (int64_t r = 0; k.learned && r < ROWS; ++r) {
        const double sign = z[r] > b ? 1.0 : z[r] < -b ? -1.0 : 0.0;
        in_alpha[r] += sign == 0 ? 0.0 : pulled[r] * (z[r] - sign * b);
        in_c[r] += pulled[r] * sign * (1.0 - a);
      }
    }
    if (!k.learned) return;
    const int64_t place = parameters - 2 * (k.depth - 1) + l - 1;
    const double at_alpha = std::fabs(theta[place]) <= k.limit ? a * (1.0 - a) : 0.0;
    const double at_c = std::fabs(theta[place + k.depth - 1]) <= k.limit ? b : 0.0;
    for (int64_t r = 0; r < ROWS; ++r) {
      column(place)[r * PANEL] = in_alpha[r] * at_alpha;
      column(place + k.depth - 1)[r * PANEL] = in_c[r] * at_c;
    }
  }

  // step = (J^T J + damping D)^-1 J^T r by Cholesky's factor, D = diagonal + lift mean; false if a pivot is not
  // positive. The last column goes through the elimination with the others.
  bool solve(double damping) {
    std::copy(gram, gram + stride * stride, factor);
    double mean = 0;
    for (int64_t i = 0; i < parameters; ++i) mean += gram[i * stride + i] / static_cast<double>(parameters);
    for (int64_t i = 0; i < parameters; ++i) {
      const double own = gram[i * stride + i];
      factor[i * stride + i] = own + damping * (own + k.lift * mean);
    }
    for (int64_t first = 0; first < parameters; first += PIVOTS) {
      const int64_t end = std::min(first + PIVOTS, parameters);
      for (int64_t i = first; i < end; ++i) {
        double* row = factor + i * stride;
        eliminate(row, first, i, i);
        if (!(row[i] > 0) || !std::isfinite(row[i])) return false;
        const double scale = 1.0 / std::sqrt(row[i]);
        for (int64_t j = i; j < columns; ++j) row[j] *= scale;
      }
      for (int64_t i = end; i < parameters; ++i) eliminate(factor + i * stride, first, end, i);
    }
    for (int64_t i = 0; i < parameters; ++i) step[i] = factor[i * stride + parameters];
    for (int64_t i = parameters - 1; i >= 0; --i) {
      step[i] /= factor[i * stride + i];
      for (int64_t j = 0; j < i; ++j) step[j] -= factor[j * stride + i] * step[i];
    }
    return true;
  }

  // row i, from column i on, minus its parts along rows first, ..., end - 1 of the factor
  void eliminate(double* row, int64_t first, int64_t end, int64_t i) {
    int64_t s = first;
    for (; s + 4 <= end; s += 4) {
      const double* f = factor + s * stride;
      const double a = f[i], b = f[stride + i], e = f[2 * stride + i], g = f[3 * stride + i];
      for (int64_t j = i; j < columns; ++j)
        row[j] -= ((a * f[j] + b * f[stride + j]) + (e * f[2 * stride + j] + g * f[3 * stride + j]));
    }
    for (; s < end; ++s) {
      const double *f = factor + s * stride, a = f[i];
      for (int64_t j = i; j < columns; ++j) row[j] -= a * f[j];
    }
  }
};

// Take the steps of all members, which are shared by the threads that pass the same counter. Return 0 if there is no
// such activation.
static int64_t run(const Squares& task, int64_t* next) {
  const auto activation = pick_activation<Activate>(
      task.activation, [](auto entry) { return activate<typename decltype(entry)::Function>; });
  if (!activation) return 0;
  Member member(task, activation);
  for (int64_t i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < task.members;) member.run(i);
  return 1;
}

}  // namespace squares

extern "C" int64_t plunit_squares(const Squares* task, int64_t* next) {
  return guarded([=] { return squares::run(*task, next); });
}
