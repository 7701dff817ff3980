// Linear bounds of piecewise-linear networks on parts of their input: one step of a branch and bound for many nodes.
// A node is a box, ranges of the units, and splits: units that are known to be below or above a knot. Layer by layer,
// each unit that may cross a knot is bounded by lines in its input, and whatever lies behind it by forms in x, through
// substitution backwards (DeepPoly, Singh et al. 2019; CROWN, Zhang et al. 2018). The forms of split units are cuts in x.
// Every form carries the rounding errors of its coefficients in its constant: a row B with |B_i - exact| <= gamma |B_i|
// is off by at most gamma sum |B_i| v_i, where v_i >= |W| |y| + |b| bounds the terms of unit i. So the answers hold for
// the network in exact arithmetic. plunit.pieces.proofs.bounding states the same in NumPy.
#include <cstring>

#include "interface.h"
#include "linear.h"
#include "wide.h"

// widths [depth + 1]; weight and bias one layer after another; knots [units, knots], slopes and the two ends of the
// intercepts [units, knots + 1]; rows x <= limits [constraints]; goals [goals, out], those of condition c from
// first[c] to first[c + 1]
#define PROOF_TASK(FIELD)           \
  FIELD(int64_t, depth)           \
  FIELD(const int64_t*, widths)   \
  FIELD(const double*, weight)    \
  FIELD(const double*, bias)      \
  FIELD(int64_t, knots)           \
  FIELD(const double*, knot)      \
  FIELD(const double*, slope)     \
  FIELD(const double*, low)       \
  FIELD(const double*, high)      \
  FIELD(int64_t, constraints)     \
  FIELD(const double*, rows)      \
  FIELD(const double*, limits)    \
  FIELD(int64_t, conditions)      \
  FIELD(const int64_t*, first)    \
  FIELD(const double*, goals)     \
  FIELD(int64_t, gradient)
STRUCT(ProofTask, PROOF_TASK)

// box [nodes, in, 2] and range [nodes, units, 2] are narrowed; split_* [nodes, splits], unit -1 for none; floor
// [nodes, goals], what the goals must reach; cut [nodes, goals, in + 1], the forms of the node above, NaN for none, become those of the node; bound [nodes, conditions], -inf
// for a condition that is out of question; x [nodes, in], where a form is largest; branch [nodes, 2]: an input, or the
// inputs + a unit, and the knot; -1 if all units are on one piece; gradient [nodes, in, 2] of the first goal
#define PROOF_NODES(FIELD)                 \
  FIELD(int64_t, nodes)              \
  FIELD(int64_t, splits)             \
  FIELD(double*, box)                \
  FIELD(double*, range)              \
  FIELD(const int64_t*, split_unit)  \
  FIELD(const double*, split_low)    \
  FIELD(const double*, split_high)   \
  FIELD(const double*, floor)        \
  FIELD(double*, cut)                \
  FIELD(double*, bound)              \
  FIELD(double*, x)                  \
  FIELD(int64_t*, branch)            \
  FIELD(double*, gradient)
STRUCT(ProofNodes, PROOF_NODES)

namespace {

constexpr int64_t ROWS = 2 * WIDE;  // rows of a block, on two vectors
constexpr int PAIR = 2;
constexpr int64_t TILE = 4;

// the lines that bound a unit on its range, and how far the unit can be from each; they are one on a single piece
struct Lines {
  double up_slope, up, down_slope, down;
  double up_gap, down_gap;
  int64_t up_knot, down_knot;  // where the gaps are; -1 on a single piece
};

class Worker {
 public:
  Worker(const ProofTask& question, const ProofNodes& nodes)
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
    score.resize(total);
    forms.resize(goals);
    const int64_t room = (2 * widest + 2) * ROWS + WIDE;
    buffer.resize(2 * room);
    for (int b = 0; b < 2; ++b) {
      const auto address = reinterpret_cast<uintptr_t>(buffer.data() + b * room);
      side[b] = reinterpret_cast<Wide*>(buffer.data() + b * room + (-address % sizeof(Wide)) / sizeof(double));
    }
  }

  void run(int64_t node) {
    n = node;
    pinned = false;
    step();
    // with all units on one piece, the pieces' own ends still cut the region
    if (nodes.branch[2 * n] < 0 && std::any_of(nodes.bound + n * q.conditions, nodes.bound + (n + 1) * q.conditions,
                                               [](double one) { return one >= 0; })) {
      pinned = true;
      step();
    }
  }

 private:
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
  std::vector<double> low, high, size, largest, lost, shape, score, buffer;
  std::vector<Lines> lines;
  std::vector<Corner> corners;
  std::vector<std::vector<int64_t>> active;
  std::vector<Form> forms;
  Wide* side[2];

  void step() {
    region.clear(nodes.box + n * inputs * 2);
    double* range = nodes.range + n * total * 2;
    for (int64_t i = 0; i < total; ++i) low[i] = range[2 * i], high[i] = range[2 * i + 1];
    for (int64_t i = 0; i < q.constraints; ++i) region.cut(q.rows + i * inputs, q.limits[i]);
    for (int64_t g = 0; g < goals; ++g) {
      const double* a = nodes.cut + (n * goals + g) * (inputs + 1);
      if (a[inputs] == a[inputs]) cut_above(a, a[inputs], floor_of(g));
    }
    for (int64_t k = 0; k < hidden && !region.empty; ++k) bound_layer(k);
    if (!region.empty) size_terms(hidden);
    nodes.branch[2 * n] = nodes.branch[2 * n + 1] = -1;
    for (int64_t j = 0; j < inputs; ++j)
      nodes.x[n * inputs + j] = nodes.box[(n * inputs + j) * 2] / 2 + nodes.box[(n * inputs + j) * 2 + 1] / 2;
    if (region.empty) {
      for (int64_t c = 0; c < q.conditions; ++c) nodes.bound[n * q.conditions + c] = NEVER;
      return;
    }
    for (int64_t j = 0; j < inputs; ++j) {
      nodes.box[(n * inputs + j) * 2] = region.low[j];
      nodes.box[(n * inputs + j) * 2 + 1] = region.high[j];
    }
    for (int64_t i = 0; i < total; ++i) range[2 * i] = low[i], range[2 * i + 1] = high[i];
    std::fill(score.begin(), score.end(), 0.0);
    if (q.gradient)
      bound_gradient();
    else
      bound_goals();
    if (!region.empty) choose();
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

  // size_i >= |W| |y| + |b| of layer k, and what underflow may take from a substitution
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

  bool crosses(int64_t i) const {
    const double* knot = q.knot + i * q.knots;
    for (int64_t j = 0; j < q.knots; ++j)
      if (knot[j] > low[i] && knot[j] < high[i]) return true;
    return false;
  }

  // a unit's value is known to be at least, or, with sign -1, at most this
  struct Limit {
    int64_t unit;
    double sign, value;
  };

  // what is known of the units of layer k: their splits or, where all units are on one piece, the ends of the pieces
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
            top = region.maximise(a, b);
            if (top == NEVER) region.empty = true;
            else if (r % 2) low[unit] = std::max(low[unit], -top);
            else high[unit] = std::min(high[unit], top);
          }
          if (low[unit] > high[unit]) region.empty = true;
        });
    if (region.empty) return;
    active[k].clear();
    for (int64_t i = base; i < base + count; ++i) {
      bound_unit(i);
      if (lines[i].up_slope != 0 || lines[i].down_slope != 0) active[k].push_back(i - base);
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
    // the edges of the upper and the lower hull over the middle of the range
    const double middle = low[i] / 2 + high[i] / 2;
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

  // side[0] holds coefficients [unit, row] of the inputs of layer k; go back to x. `felt`, if it is given, receives the
  // coefficient of each unit's output in row 0.
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

  // the form of goal g: an upper bound of goal y
  void goal_form(int64_t g, double* felt) {
    const int64_t outputs = q.widths[q.depth];
    const double* goal = q.goals + g * outputs;
    double* coefficients = reinterpret_cast<double*>(side[0]);
    double constant[ROWS] = {}, terms[ROWS] = {};
    std::memset(coefficients, 0, sizeof(double) * q.widths[hidden] * ROWS);
    for (int64_t o = 0; o < outputs; ++o) {
      if (goal[o] == 0) continue;
      const double* w = row_of(hidden, o);
      for (int64_t j = 0; j < q.widths[hidden]; ++j) coefficients[j * ROWS] += goal[o] * w[j];
      constant[0] += goal[o] * q.bias[unit_of[hidden] + o];
      terms[0] += std::fabs(goal[o]) * size[unit_of[hidden] + o] + lost[hidden];
    }
    substitute(hidden, constant, terms, felt);
    finish(1, constant, terms, 0, [&](int64_t, const double* a, double b) {
      forms[g].coefficients.assign(a, a + inputs);
      forms[g].constant = b;
    });
  }

  void bound_goals() {
    std::vector<double> felt(total), x(inputs + 1);
    double best = NEVER;
    for (int64_t c = 0; c < q.conditions; ++c) {
      double& bound = nodes.bound[n * q.conditions + c];
      if (bound == NEVER) continue;
      const int64_t first = q.first[c], count = q.first[c + 1] - first;
      double least = -NEVER;
      for (int64_t g = first; g < first + count; ++g) {
        goal_form(g, nullptr);
        least = std::min(least, region.over_box(forms[g].coefficients.data(), forms[g].constant - floor_of(g)));
      }
      // the largest t >= 0 that all goals exceed their floors by
      Region all = count > 1 ? region.with_input(0, std::max(least, 0.0)) : region;
      if (least < 0) all.empty = true;
      for (int64_t g = first; g < first + count && count > 1; ++g) {
        std::vector<double> row(inputs + 1, 1.0);
        for (int64_t j = 0; j < inputs; ++j) row[j] = -forms[g].coefficients[j];
        all.cut(row.data(), above(forms[g].constant, floor_of(g)));
      }
      std::vector<double> goal(inputs + 1, 0.0);
      goal[inputs] = 1;
      const Form& only = forms[first];
      const double top = count > 1 ? all.maximise(goal.data(), 0, x.data())
                                   : all.maximise(only.coefficients.data(), above(only.constant, floor_of(first)), x.data());
      bound = top;
      if (bound > best) {
        best = bound;
        std::copy_n(x.begin(), inputs, nodes.x + n * inputs);
        std::fill(score.begin(), score.end(), 0.0);
        for (int64_t g = first; g < first + count; ++g) {
          const double weight = count > 1 ? all.multiplier(region.cuts() + g - first) : 1;
          if (!(weight > 0)) continue;
          goal_form(g, felt.data());
          for (int64_t i = 0; i < total; ++i)
            score[i] += weight * (felt[i] > 0 ? felt[i] * lines[i].up_gap : -felt[i] * lines[i].down_gap);
        }
      }
    }
    for (int64_t g = 0; g < goals; ++g) {
      double* to = nodes.cut + (n * goals + g) * (inputs + 1);
      to[inputs] = std::numeric_limits<double>::quiet_NaN();
      if (q.conditions > 1 || forms[g].coefficients.empty() || best == NEVER) continue;
      std::copy(forms[g].coefficients.begin(), forms[g].coefficients.end(), to);
      to[inputs] = forms[g].constant;
    }
  }

  // The gradient of goal 0 backwards: a unit on several pieces has slope s = middle + radius e with |e| <= 1, so that
  // s v = middle v + radius |v| e'. Centre and one column for each such e' make a zonotope.
  void bound_gradient() {
    const int64_t outputs = q.widths[q.depth];
    centre_point();
    if (region.empty) return;
    std::vector<double> centre(q.widths[hidden], 0.0), terms(q.widths[hidden], 0.0);
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t j = 0; j < q.widths[hidden]; ++j) {
        centre[j] += q.goals[o] * row_of(hidden, o)[j];
        terms[j] += std::fabs(q.goals[o] * row_of(hidden, o)[j]) + FLOOR;
      }
    std::vector<std::vector<double>> columns;
    std::vector<int64_t> owners;
    for (int64_t k = hidden - 1; k >= 0; --k) {
      const int64_t base = unit_of[k], width = q.widths[k];
      std::vector<double> next(width, 0.0), sizes(width, 0.0);
      std::vector<std::vector<double>> through(columns.size(), std::vector<double>(width, 0.0));
      for (int64_t i = 0; i < q.widths[k + 1]; ++i) {
        const auto [least, most] = slopes_of(base + i);
        const double middle = least / 2 + most / 2, steep = std::max(std::fabs(least), std::fabs(most));
        const double radius = std::max(most - middle, middle - least);
        double reach = std::fabs(centre[i]);
        for (const auto& column : columns) reach += std::fabs(column[i]);
        const double* w = row_of(k, i);
        for (int64_t j = 0; j < width; ++j) {
          next[j] += middle * centre[i] * w[j];
          sizes[j] += (steep * terms[i] + FLOOR) * std::fabs(w[j]) + FLOOR;
        }
        for (size_t e = 0; e < columns.size(); ++e)
          for (int64_t j = 0; j < width; ++j) through[e][j] += middle * columns[e][i] * w[j];
        if (radius > 0 && reach > 0) {
          through.emplace_back(width);
          for (int64_t j = 0; j < width; ++j) through.back()[j] = radius * reach * w[j];
          owners.push_back(base + i);
        }
      }
      centre.swap(next), terms.swap(sizes), columns.swap(through);
    }
    // terms bound the centre and every column; each of them is a sum of products of at most so many factors
    const double error = gamma_of(operations + 4 * total) * (2.0 + static_cast<double>(columns.size()));
    for (int64_t j = 0; j < inputs; ++j) {
      double spread = error * terms[j];
      for (const auto& column : columns) spread += std::fabs(column[j]) * (1 + 1e-12);
      nodes.gradient[(n * inputs + j) * 2] = centre[j] - spread - 4 * UNIT * std::fabs(centre[j]);
      nodes.gradient[(n * inputs + j) * 2 + 1] = centre[j] + spread + 4 * UNIT * std::fabs(centre[j]);
    }
    for (size_t e = 0; e < owners.size(); ++e)
      for (int64_t j = 0; j < inputs; ++j) score[owners[e]] += std::fabs(columns[e][j]);
  }

  // the least and the largest slope of a unit on its range
  std::pair<double, double> slopes_of(int64_t i) const {
    const double* knot = q.knot + i * q.knots;
    double least = -NEVER, most = NEVER;
    const bool point = !(low[i] < high[i]);
    for (int64_t j = 0; j <= q.knots; ++j) {
      const double from = j ? knot[j - 1] : NEVER, to = j < q.knots ? knot[j] : -NEVER;
      if (point ? from <= high[i] && to >= low[i] : from < high[i] && to > low[i]) {
        least = std::min(least, q.slope[i * (q.knots + 1) + j]);
        most = std::max(most, q.slope[i * (q.knots + 1) + j]);
      }
    }
    return {least, most};
  }

  // x far from all cuts; the region is empty if there is none
  void centre_point() {
    if (!region.cuts()) return;
    Region all = region.shrunk();
    std::vector<double> goal(inputs + 1, 0.0), x(inputs + 1);
    goal[inputs] = 1;
    if (all.maximise(goal.data(), 0, x.data()) == NEVER) {
      region.empty = true;
      for (int64_t c = 0; c < q.conditions; ++c) nodes.bound[n * q.conditions + c] = NEVER;
    }
    std::copy_n(x.begin(), inputs, nodes.x + n * inputs);
  }

  // the width of an input; 0 if its halves would be no smaller
  double divisible(int64_t j) const {
    const double middle = (region.low[j] + region.high[j]) / 2;
    return middle > region.low[j] && middle < region.high[j] ? region.high[j] - region.low[j] : 0;
  }

  void choose() {
    // where the goals are exact, the cuts need not be
    if (std::none_of(score.begin(), score.end(), [](double one) { return one > 0; }))
      for (int64_t i = 0; i < total; ++i) score[i] = lines[i].up_gap + lines[i].down_gap;
    // a split of a unit removes its gap; a split of an input halves the share of the gaps that the input causes
    int64_t unit = -1, input = -1;
    double best = 0, whole = 0;
    std::vector<double> share(inputs, 0.0);
    for (int64_t i = 0; i < total; ++i) {
      if (!(score[i] > 0)) continue;
      whole += score[i];
      if (score[i] > best) best = score[i], unit = i;
      double sum = 0;
      for (int64_t j = 0; j < inputs; ++j) sum += std::fabs(shape[i * inputs + j]) * divisible(j);
      if (!(sum > 0)) continue;
      for (int64_t j = 0; j < inputs; ++j) share[j] += score[i] * std::fabs(shape[i * inputs + j]) * divisible(j) / sum;
    }
    if (unit < 0) return;
    double most = 0;
    for (int64_t j = 0; j < inputs; ++j)
      if (share[j] > most) most = share[j], input = j;
    // a gradient's gap stays as wide as it is until the unit is on one piece
    if (input >= 0 && (q.gradient ? 8.0 : 1.0) * best < most) {
      nodes.branch[2 * n] = input;
      return;
    }
    nodes.branch[2 * n] = inputs + unit;
    nodes.branch[2 * n + 1] = lines[unit].up_gap >= lines[unit].down_gap ? lines[unit].up_knot : lines[unit].down_knot;
  }

};

}  // namespace

extern "C" {

// Bound the nodes; threads that call it with the same counter, from 0, share them. Returns 0, or NO_MEMORY.
int64_t plunit_prove(const ProofTask* task, const ProofNodes* nodes, int64_t* next) {
  return guarded([=] {
    Worker worker(*task, *nodes);
    for (int64_t i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < nodes->nodes;) worker.run(i);
    return 0;
  });
}

// See interface.h.
void plunit_layout(int64_t i, char* to, int64_t room) { write_layout<ProofTask, ProofNodes>(i, to, room); }
}
