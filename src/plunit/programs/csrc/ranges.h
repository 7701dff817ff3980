// Ranges of the units of a network on a part of its domain, and forms in x that bound units and goals. Layer by layer,
// each unit that may cross a knot is bounded by lines in its z, and all that depends on it by forms in x, through
// backward substitution (DeepPoly, Singh et al. 2019; CROWN, Zhang et al. 2018). The forms of units that are known to
// be on one side of a knot are cuts in x.
// Every form carries the rounding errors of its coefficients in its constant: a row B with |B_i - exact| <= gamma |B_i|
// is off by at most gamma sum |B_i| v_i, where v_i >= |W| |y| + |b| bounds the terms of unit i. So all forms hold for
// the network in exact arithmetic. plunit.pieces.proofs.numpy_bounds and relaxation do the same in NumPy.
#pragma once
#include <chrono>
#include <cstring>

#include "interface.h"
#include "linear.h"
#include "wide.h"

// widths [depth + 1]; weight and bias, layer by layer; knots [units, knots], slopes and the two ends of the
// intercepts [units, knots + 1]; rows x <= limits [constraints]; goals [goals, out], those of condition c from
// first[c] to first[c + 1]
#define PROOF_TASK(FIELD)       \
  FIELD(int64_t, depth)         \
  FIELD(const int64_t*, widths) \
  FIELD(const double*, weight)  \
  FIELD(const double*, bias)    \
  FIELD(int64_t, knots)         \
  FIELD(const double*, knot)    \
  FIELD(const double*, slope)   \
  FIELD(const double*, low)     \
  FIELD(const double*, high)    \
  FIELD(int64_t, constraints)   \
  FIELD(const double*, rows)    \
  FIELD(const double*, limits)  \
  FIELD(int64_t, conditions)    \
  FIELD(const int64_t*, first)  \
  FIELD(const double*, goals)   \
  FIELD(int64_t, gradient)
STRUCT(ProofTask, PROOF_TASK)

// box [nodes, in, 2] and range [nodes, units, 2] are narrowed; split_* [nodes, splits], unit -1 for none; floor
// [nodes, goals], the values that the goals must reach; cut [nodes, goals, in + 1], the forms of the parent, NaN for
// none, which become those of the node; bound [nodes, conditions], -inf for a condition that is ruled out; x
// [nodes, in], where a form is largest; branch [nodes, 2]: an input, or the number of inputs + a unit, and the knot, -1
// if all units are on one piece; gradient [nodes, in, 2], of the first goal; seconds, the time limit
#define PROOF_NODES(FIELD)          \
  FIELD(int64_t, nodes)             \
  FIELD(int64_t, splits)            \
  FIELD(double*, box)               \
  FIELD(double*, range)             \
  FIELD(const int64_t*, split_unit) \
  FIELD(const double*, split_low)   \
  FIELD(const double*, split_high)  \
  FIELD(const double*, floor)       \
  FIELD(double*, cut)               \
  FIELD(double*, bound)             \
  FIELD(double*, x)                 \
  FIELD(int64_t*, branch)           \
  FIELD(double*, gradient)          \
  FIELD(double, seconds)
STRUCT(ProofNodes, PROOF_NODES)

namespace {

constexpr int64_t ROWS = 2 * WIDE;  // rows of a block, on two vectors
constexpr int PAIR = 2;
constexpr int64_t TILE = 4;

// the lines that bound a unit on its range, and how far the unit can be from each; the same line on a single piece
struct Lines {
  double up_slope, up, down_slope, down;
  double up_gap, down_gap;
  int64_t up_knot, down_knot;  // where the gaps are; -1 on a single piece
};

// Thrown when the time is over; the nodes are invalid then.
struct Stopped {};

class Ranges {
 public:
  Ranges(const ProofTask& question, const ProofNodes& nodes)
      : q(question), nodes(nodes), inputs(question.widths[0]), hidden(question.depth - 1), region(inputs) {
    int64_t units = 0, weights = 0;
    widest = inputs;
    for (int64_t k = 0; k < q.depth; ++k) {
      unit_of.push_back(units);
      weight_of.push_back(weights);
      units += q.widths[k + 1];
      weights += q.widths[k + 1] * q.widths[k];
      widest = std::max(widest, q.widths[k + 1]);
      operations += 4 * q.widths[k + 1];
    }
    total = units - q.widths[q.depth];
    operations += 4 * inputs + 64;
    goals = q.first[q.conditions];
    low.resize(total), high.resize(total), lines.resize(total), size.resize(units), largest.resize(total);
    active.resize(hidden);
    lost.resize(q.depth);
    shape.resize(total * inputs);
    touch.resize(total);
    const int64_t room = (2 * widest + 2) * ROWS + WIDE;
    buffer.resize(2 * room);
    for (int b = 0; b < 2; ++b) {
      const auto address = reinterpret_cast<uintptr_t>(buffer.data() + b * room);
      side[b] = reinterpret_cast<Wide*>(buffer.data() + b * room + (-address % sizeof(Wide)) / sizeof(double));
    }
  }

 protected:
  // the corners of a unit's function: the ends of its range, and the knots inside
  struct Corner {
    double z, value, error;
    int64_t knot;
  };

  const ProofTask& q;
  const ProofNodes& nodes;
  const int64_t inputs, hidden;
  bool pinned = false;
  int64_t n = 0, total = 0, widest = 0, goals = 0, operations = 0;
  Region region;
  std::vector<int64_t> unit_of, weight_of;
  std::vector<double> low, high, size, largest, lost, shape, touch, buffer;
  std::vector<Lines> lines;
  std::vector<Corner> corners;
  std::vector<std::vector<int64_t>> active;
  Wide* side[2];
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();

  // Called before every block of work that may take longer than a millisecond.
  void check_time() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    if (spent.count() > nodes.seconds) throw Stopped();
  }

  // Read a node, narrow its region and the ranges of its units, and write them back unless the region is empty.
  void narrow(int64_t node, bool pin) {
    n = node;
    pinned = pin;
    region.clear(nodes.box + n * inputs * 2);
    double* range = nodes.range + n * total * 2;
    for (int64_t i = 0; i < total; ++i) low[i] = range[2 * i], high[i] = range[2 * i + 1];
    for (int64_t i = 0; i < q.constraints; ++i) region.cut(q.rows + i * inputs, q.limits[i]);
    for (int64_t g = 0; g < goals; ++g) {
      const double* a = nodes.cut + (n * goals + g) * (inputs + 1);
      if (a[inputs] == a[inputs]) cut_above(a, a[inputs], floor_of(g));
    }
    for (int64_t k = 0; k < hidden && !region.empty; ++k) bound_layer(k);
    if (region.empty) return;
    size_terms(hidden);
    for (int64_t j = 0; j < inputs; ++j) {
      nodes.box[(n * inputs + j) * 2] = region.low[j];
      nodes.box[(n * inputs + j) * 2 + 1] = region.high[j];
    }
    for (int64_t i = 0; i < total; ++i) range[2 * i] = low[i], range[2 * i + 1] = high[i];
  }

  double error_of() const { return gamma_of(operations) * 1.0001; }

  double floor_of(int64_t goal) const { return nodes.floor[n * goals + goal]; }

  static double above(double constant, double floor) {
    return (constant - floor) + 2 * UNIT * (std::fabs(constant) + std::fabs(floor));
  }

  // value >= floor and value <= a x + b
  void cut_above(const double* a, double b, double floor) {
    std::vector<double> minus(inputs);
    for (int64_t j = 0; j < inputs; ++j) minus[j] = -a[j];
    region.cut(minus.data(), above(b, floor));
  }

  const double* row_of(int64_t k, int64_t i) const { return q.weight + weight_of[k] + i * q.widths[k]; }

  double reach(int64_t k, int64_t j) const {  // |y_j| of the layer before k
    return k ? largest[unit_of[k - 1] + j] : std::max(std::fabs(region.low[j]), std::fabs(region.high[j]));
  }

  // size_i >= |W| |y| + |b| of layer k, and what a substitution may lose to underflow
  void size_terms(int64_t k) {
    double all = 0;
    for (int64_t j = 0; j < q.widths[k]; ++j) all += reach(k, j) + 1;
    for (int64_t i = 0; i < q.widths[k + 1]; ++i) {
      const double* w = row_of(k, i);
      double sum = std::fabs(q.bias[unit_of[k] + i]);
      for (int64_t j = 0; j < q.widths[k]; ++j) sum += std::fabs(w[j]) * reach(k, j);
      size[unit_of[k] + i] = sum;
      all += sum + 1;
    }
    lost[k] = FLOOR * all;
  }

  // the first knot inside the range of a unit, -1 if the unit is on one piece
  int64_t inner_knot(int64_t i) const {
    const double* knot = q.knot + i * q.knots;
    for (int64_t j = 0; j < q.knots; ++j)
      if (knot[j] > low[i] && knot[j] < high[i]) return j;
    return -1;
  }

  bool crosses(int64_t i) const { return inner_knot(i) >= 0; }

  // a unit's value is known to be at least, or, with sign -1, at most this
  struct Limit {
    int64_t unit;
    double sign, value;
  };

  // what is known about the units of layer k: their splits or, if all units are on one piece, the ends of the pieces
  std::vector<Limit> limits_of(int64_t k) const {
    std::vector<Limit> found;
    const int64_t base = unit_of[k], end = base + q.widths[k + 1];
    auto add = [&](int64_t unit, double least, double most) {
      if (least > NEVER) found.push_back({unit - base, 1.0, least});
      if (most < -NEVER) found.push_back({unit - base, -1.0, most});
    };
    for (int64_t s = n * nodes.splits; s < (n + 1) * nodes.splits && !pinned; ++s)
      if (nodes.split_unit[s] >= base && nodes.split_unit[s] < end)
        add(nodes.split_unit[s], nodes.split_low[s], nodes.split_high[s]);
    for (int64_t i = base; i < end && pinned; ++i) {
      const double* knot = q.knot + i * q.knots;
      const int64_t on = piece(i, low[i]);
      if (on == q.knots || knot[on] >= high[i]) add(i, on ? knot[on - 1] : NEVER, on < q.knots ? knot[on] : -NEVER);
    }
    return found;
  }

  void cut_splits(int64_t k) {
    const std::vector<Limit> limits = limits_of(k);
    if (limits.empty()) return;
    for (const Limit& one : limits) {
      double &least = low[unit_of[k] + one.unit], &most = high[unit_of[k] + one.unit];
      if (one.sign > 0) least = std::max(least, one.value);
      else most = std::min(most, one.value);
      if (least > most) region.empty = true;
    }
    if (region.empty) return;
    upper_forms(
        k, static_cast<int64_t>(limits.size()),
        [&](int64_t r) { return std::make_pair(limits[r].unit, limits[r].sign); },
        [&](int64_t r, const double* a, double b) { cut_above(a, b, limits[r].sign * limits[r].value); });
    region.shrink_all();
  }

  void bound_layer(int64_t k) {
    size_terms(k);
    const int64_t base = unit_of[k], count = q.widths[k + 1];
    cut_splits(k);
    if (region.empty) return;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < count; ++i)
      if (crosses(base + i) || !std::isfinite(low[base + i]) || !std::isfinite(high[base + i])) rows.push_back(i);
    upper_forms(
        k, 2 * static_cast<int64_t>(rows.size()),
        [&](int64_t r) { return std::make_pair(rows[r / 2], r % 2 ? -1.0 : 1.0); },
        [&](int64_t r, const double* a, double b) {
          const int64_t unit = base + rows[r / 2];
          double top = region.over_box(a, b);
          if (r % 2) {
            low[unit] = std::max(low[unit], -top);
          } else {
            high[unit] = std::min(high[unit], top);
            std::memcpy(&shape[unit * inputs], a, sizeof(double) * inputs);
          }
          if (region.cuts() && crosses(unit)) {
            check_time();
            top = region.maximise(a, b);
            if (top == NEVER) region.empty = true;
            else if (r % 2) low[unit] = std::max(low[unit], -top);
            else high[unit] = std::min(high[unit], top);
          }
          if (low[unit] > high[unit]) region.empty = true;
        });
    if (region.empty) return;
    for (int64_t i = base; i < base + count; ++i) touch[i] = low[i] / 2 + high[i] / 2;
    relax(k);
  }

  // compute the lines of the units of layer k: the edges of the hulls of their graphs that lie over `touch`
  void relax(int64_t k) {
    active[k].clear();
    for (int64_t i = unit_of[k]; i < unit_of[k] + q.widths[k + 1]; ++i) {
      bound_unit(i);
      if (lines[i].up_slope != 0 || lines[i].down_slope != 0) active[k].push_back(i - unit_of[k]);
    }
  }

  // the piece above z, counted from the left
  int64_t piece(int64_t i, double z) const {
    const double* knot = q.knot + i * q.knots;
    int64_t found = 0;
    while (found < q.knots && knot[found] <= z) ++found;
    return found;
  }

  void bound_unit(int64_t i) {
    const double* knot = q.knot + i * q.knots;
    int64_t on = 0;  // the piece above the lower end
    while (on < q.knots && knot[on] <= low[i]) ++on;
    corners.clear();
    auto add = [&](double z, int64_t at_knot) {
      const int64_t at = i * (q.knots + 1) + on;
      const double product = q.slope[at] * z, error = 4 * UNIT * (std::fabs(product) + std::fabs(q.high[at]));
      corners.push_back({z, product + q.high[at], (q.high[at] - q.low[at]) + error + FLOOR, at_knot});
    };
    add(low[i], -1);
    for (; on < q.knots && knot[on] < high[i]; ++on) add(knot[on], on);
    add(high[i], -1);
    largest[i] = 0;
    for (const Corner& one : corners)
      largest[i] = std::max(largest[i], (std::fabs(one.value) + one.error) * (1 + 4 * UNIT));
    const int64_t at = i * (q.knots + 1) + on;
    if (corners.size() == 2) {
      lines[i] = {q.slope[at], q.high[at], q.slope[at], q.low[at], 0, 0, -1, -1};
      return;
    }
    const double middle = touch[i];
    double up = q.slope[at], down = up, most = NEVER, least = -NEVER;
    for (const Corner& a : corners)
      for (const Corner& b : corners) {
        if (a.z > middle || b.z < middle || !(b.z > a.z)) continue;
        const double slope = (b.value - a.value) / (b.z - a.z), value = a.value + slope * (middle - a.z);
        if (!std::isfinite(slope)) continue;
        if (value > most) most = value, up = slope;
        if (value < least) least = value, down = slope;
      }
    Lines& line = lines[i] = {up, NEVER, down, -NEVER, 0, 0, -1, -1};
    for (const Corner& one : corners) {
      const double a = up * one.z, b = down * one.z, size = 4 * UNIT * std::fabs(one.value) + one.error + FLOOR;
      line.up = std::max(line.up, (one.value - a) + size + 4 * UNIT * std::fabs(a));
      line.down = std::min(line.down, (one.value - b) - size - 4 * UNIT * std::fabs(b));
    }
    for (const Corner& one : corners) {
      if (one.knot < 0) continue;
      const double above = up * one.z + line.up - one.value, below = one.value - (down * one.z + line.down);
      if (line.up_knot < 0 || above > line.up_gap) line.up_gap = above, line.up_knot = one.knot;
      if (line.down_knot < 0 || below > line.down_gap) line.down_gap = below, line.down_knot = one.knot;
    }
  }

  // For each of `count` rows, sign times a unit of layer k as given by pick(row), find a x + b that is never below it,
  // and call found(row, a, b).
  template <class Pick, class Found>
  void upper_forms(int64_t k, int64_t count, Pick pick, Found found) {
    for (int64_t start = 0; start < count; start += ROWS) {
      check_time();
      const int64_t block = std::min(ROWS, count - start);
      double* coefficients = reinterpret_cast<double*>(side[0]);
      double constant[ROWS] = {}, terms[ROWS] = {};
      std::memset(coefficients, 0, sizeof(double) * q.widths[k] * ROWS);
      for (int64_t r = 0; r < block; ++r) {
        const auto [unit, sign] = pick(start + r);
        const double* w = row_of(k, unit);
        for (int64_t j = 0; j < q.widths[k]; ++j) coefficients[j * ROWS + r] = sign * w[j];
        constant[r] = sign * q.bias[unit_of[k] + unit];
        terms[r] = size[unit_of[k] + unit];
      }
      substitute(k, constant, terms, nullptr);
      finish(block, constant, terms, start, found);
    }
  }

  template <class Found>
  void finish(int64_t block, const double* constant, const double* terms, int64_t start, Found found) {
    const double* coefficients = reinterpret_cast<const double*>(side[0]);
    std::vector<double> a(inputs);
    for (int64_t r = 0; r < block && !region.empty; ++r) {
      double sum = terms[r];
      for (int64_t j = 0; j < inputs; ++j) {
        a[j] = coefficients[j * ROWS + r];
        sum += std::fabs(a[j]) * reach(0, j);
      }
      found(start + r, a.data(), constant[r] + error_of() * sum);
    }
  }

  // side[0] holds coefficients [unit, row] of the inputs of layer k; substitute backwards to x. `felt`, if given,
  // receives the coefficient of each unit's output in row 0.
  void substitute(int64_t k, double* constant, double* terms, double* felt) {
    Wide sums[PAIR], sizes[PAIR];
    std::memcpy(sums, constant, sizeof sums);
    std::memcpy(sizes, terms, sizeof sizes);
    for (int64_t layer = k - 1; layer >= 0; --layer) {
      const int64_t base = unit_of[layer], width = q.widths[layer];
      Wide *from = side[0], *to = side[1];
      if (felt)
        for (int64_t i = 0; i < q.widths[layer + 1]; ++i) felt[base + i] = from[i * PAIR][0];
      for (int64_t i = 0; i < q.widths[layer + 1]; ++i) {
        const Lines& line = lines[base + i];
        const double bias = q.bias[base + i], v = size[base + i];
        for (int p = 0; p < PAIR; ++p) {
          const Wide a = from[i * PAIR + p], zero{};
          const Wide more = a > zero ? a : zero, less = a > zero ? zero : a;
          const Wide b = more * line.up_slope + less * line.down_slope, t = more * line.up + less * line.down;
          sums[p] = fused(b, zero + bias, sums[p] + t);
          sizes[p] += (b < zero ? -b : b) * v + (t < zero ? -t : t);
          from[i * PAIR + p] = b;
        }
      }
      for (int p = 0; p < PAIR; ++p) sizes[p] += lost[layer];
      const double* w = q.weight + weight_of[layer];
      int64_t j = 0;
      for (; j + TILE <= width; j += TILE) product<TILE>(w, width, j, active[layer], from, to);
      for (; j < width; ++j) product<1>(w, width, j, active[layer], from, to);
      std::swap(side[0], side[1]);
    }
    std::memcpy(constant, sums, sizeof sums);
    std::memcpy(terms, sizes, sizeof sizes);
  }

  template <int64_t T>
  static void product(const double* w, int64_t width, int64_t j, const std::vector<int64_t>& rows, const Wide* from,
                      Wide* to) {
    Wide sum[T][PAIR] = {};
    for (int64_t i : rows)
      for (int64_t t = 0; t < T; ++t)
        for (int p = 0; p < PAIR; ++p)
          sum[t][p] = fused(Wide{} + w[i * width + j + t], from[i * PAIR + p], sum[t][p]);
    for (int64_t t = 0; t < T; ++t)
      for (int p = 0; p < PAIR; ++p) to[(j + t) * PAIR + p] = sum[t][p];
  }
};

}  // namespace
