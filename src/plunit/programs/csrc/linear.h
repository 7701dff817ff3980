// max c x + c0 over a box and cuts a x <= b, as a bound that rounding cannot make wrong.
// The dual simplex method with long steps starts from the best corner of the box, for which the dual is feasible. Its
// multipliers y >= 0 are only a proposal: any y >= 0 gives the bound max over the box of (c - y A) x + y b + c0
// (Neumaier and Shcherbina, 2004), which is evaluated with its rounding error. plunit.pieces.proofs.linear does the
// same in NumPy.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr double UNIT = 1.1102230246251565e-16;  // the unit roundoff of double
constexpr double FLOOR = 1e-300;                 // more than a product can lose to underflow
constexpr double NEVER = -std::numeric_limits<double>::infinity();

static inline double gamma_of(int64_t count) { return 1.01 * UNIT * static_cast<double>(count); }

// NaN comes from numbers that are too large, and is no bound
static inline double number(double found) { return found == found ? found : -NEVER; }

// value <= coefficients x + constant
struct Form {
  std::vector<double> coefficients;
  double constant = 0;
};

class Region {
 public:
  explicit Region(int64_t inputs) : inputs(inputs), low(inputs), high(inputs) {}

  const int64_t inputs;
  std::vector<double> low, high;
  bool empty = false;

  void clear(const double* box) {
    for (int64_t j = 0; j < inputs; ++j) low[j] = box[2 * j], high[j] = box[2 * j + 1];
    rows.clear();
    limits.clear();
    empty = false;
  }

  // the same region, with one more input in [least, most], whose coefficients in the cuts are 0
  Region with_input(double least, double most) const {
    Region wider(inputs + 1);
    std::copy(low.begin(), low.end(), wider.low.begin());
    std::copy(high.begin(), high.end(), wider.high.begin());
    wider.low[inputs] = least, wider.high[inputs] = most;
    for (int64_t i = 0; i < cuts(); ++i) {
      wider.rows.insert(wider.rows.end(), rows.begin() + i * inputs, rows.begin() + (i + 1) * inputs);
      wider.rows.push_back(0);
    }
    wider.limits = limits;
    wider.empty = empty;
    return wider;
  }

  // the same region, with one more input t: every cut is at least t widths of the box away
  Region shrunk() const {
    Region found = with_input(0, 1);
    for (int64_t i = 0; i < cuts(); ++i) {
      double size = 0;
      for (int64_t j = 0; j < inputs; ++j) size += std::fabs(rows[i * inputs + j]) * (high[j] - low[j]);
      found.rows[i * (inputs + 1) + inputs] = size;
    }
    return found;
  }

  int64_t cuts() const { return static_cast<int64_t>(limits.size()); }

  // the multiplier of a cut in the last program
  double multiplier(int64_t i) const { return i < static_cast<int64_t>(dual.size()) ? dual[i] : 0; }

  // add the cut a x <= b, and shrink the box by it
  void cut(const double* a, double b) {
    rows.insert(rows.end(), a, a + inputs);
    limits.push_back(b);
    shrink(cuts() - 1);
  }

  void shrink_all() {
    for (int64_t i = 0; i < cuts(); ++i) shrink(i);
  }

  // the bound over only the box
  double over_box(const double* c, double constant) const {
    double sum = constant, size = std::fabs(constant);
    for (int64_t j = 0; j < inputs; ++j) {
      const double best = std::max(c[j] * low[j], c[j] * high[j]);
      sum += best;
      size += std::fabs(best) + FLOOR;
    }
    return number(sum + gamma_of(inputs + 4) * size);
  }

  // The bound over box and cuts, never above that over the box; NEVER if there is no such point. x, if given, receives
  // the point where the linear program has its maximum.
  double maximise(const double* c, double constant, double* x = nullptr) {
    if (empty) return NEVER;
    const double wide = over_box(c, constant);
    if (!cuts()) {
      if (x)
        for (int64_t j = 0; j < inputs; ++j) x[j] = c[j] > 0 ? high[j] : low[j];
      return wide;
    }
    const bool possible = solve(c, x);
    double found = possible ? evaluate(c, constant, dual.data()) : NEVER;
    if (!possible) {
      // y b + max (-y A) x < 0 shows that no point in the box satisfies all cuts
      const std::vector<double> nothing(inputs, 0.0);
      if (evaluate(nothing.data(), 0.0, ray.data()) < 0) return NEVER;
      found = evaluate(c, constant, dual.data());
    }
    return found < wide ? found : wide;
  }

 private:
  std::vector<double> rows, limits, table, right, cost, dual, ray, scales;
  std::vector<int64_t> basic, other;  // variables: inputs first, then the slack of each cut
  std::vector<char> top;              // whether an input is at its upper end
  std::vector<std::pair<double, int64_t>> order;

  void shrink(int64_t i) {
    const double* a = &rows[i * inputs];
    double least = 0, size = std::fabs(limits[i]);
    for (int64_t j = 0; j < inputs; ++j) {
      const double part = std::min(a[j] * low[j], a[j] * high[j]);
      least += part;
      size += std::fabs(part) + FLOOR;
    }
    const double error = 2 * gamma_of(inputs + 6) * size, room = limits[i] - least + error;
    if (room < 0) empty = true;
    if (!(room >= 0)) return;
    for (int64_t j = 0; j < inputs; ++j) {
      if (!(std::fabs(a[j]) > 1e-200)) continue;
      const double step = room / std::fabs(a[j]) * (1 + 8 * UNIT) + FLOOR;
      if (!(step < high[j] - low[j])) continue;
      if (a[j] > 0) {
        const double end = low[j] + step;
        high[j] = std::min(high[j], end + 2 * UNIT * (std::fabs(end) + std::fabs(low[j]) + step) + FLOOR);
      } else {
        const double end = high[j] - step;
        low[j] = std::max(low[j], end - 2 * UNIT * (std::fabs(end) + std::fabs(high[j]) + step) - FLOOR);
      }
    }
  }

  double evaluate(const double* c, double constant, const double* y) const {
    double sum = constant, size = std::fabs(constant);
    for (int64_t i = 0; i < cuts(); ++i) sum += y[i] * limits[i], size += std::fabs(y[i] * limits[i]) + FLOOR;
    for (int64_t j = 0; j < inputs; ++j) {
      double rest = c[j], terms = std::fabs(c[j]) + FLOOR;
      for (int64_t i = 0; i < cuts(); ++i) {
        const double part = y[i] * rows[i * inputs + j];
        rest -= part;
        terms += std::fabs(part) + FLOOR;
      }
      sum += std::max(rest * low[j], rest * high[j]);
      size += terms * (std::max(std::fabs(low[j]), std::fabs(high[j])) + FLOOR);
    }
    return number(sum + gamma_of(cuts() + inputs + 8) * 1.0001 * size);
  }

  // Write multipliers to `dual`; return false if there seems to be no point, with a proof of it in `ray`.
  bool solve(const double* c, double* x) {
    const int64_t m = cuts(), n = inputs;
    table = rows;  // slack_i = right_i - sum_j table_ij v_j, where v_j is how far nonbasic j is from its end
    right = limits;
    cost.assign(c, c + n);
    basic.resize(m);
    other.resize(n);
    top.assign(n, 0);
    dual.assign(m, 0.0);
    ray.assign(m, 0.0);
    scales.resize(m);
    for (int64_t i = 0; i < m; ++i) {
      basic[i] = n + i;
      scales[i] = std::fabs(limits[i]);
      for (int64_t j = 0; j < n; ++j)
        scales[i] += std::fabs(rows[i * n + j]) * std::max(std::fabs(low[j]), std::fabs(high[j]));
    }
    for (int64_t j = 0; j < n; ++j) {
      other[j] = j;
      for (int64_t i = 0; i < m; ++i) right[i] -= table[i * n + j] * low[j];
      if (c[j] > 0) flip(j);
    }
    bool possible = true;
    for (int64_t step = 0; step < 20 * (m + n); ++step) {
      int64_t leaving = -1;
      bool above = false;
      double worst = 0;
      for (int64_t i = 0; i < m; ++i) {
        const double scale = basic[i] < n ? 1e-9 * (high[basic[i]] - low[basic[i]]) : 1e-11 * scales[basic[i] - n];
        const double under = -right[i], over = basic[i] < n ? right[i] - (high[basic[i]] - low[basic[i]]) : -1;
        if (std::max(under, over) - scale > worst) {
          worst = std::max(under, over) - scale;
          leaving = i;
          above = over > under;
        }
      }
      if (leaving < 0) break;
      if (!(possible = pivot(leaving, above))) break;
    }
    for (int64_t j = 0; j < n; ++j)
      if (other[j] >= n) dual[other[j] - n] = std::max(0.0, -cost[j]);
    if (x) {
      for (int64_t j = 0; j < n; ++j)
        if (other[j] < n) x[other[j]] = top[other[j]] ? high[other[j]] : low[other[j]];
      for (int64_t i = 0; i < m; ++i)
        if (basic[i] < n) {
          const int64_t j = basic[i];
          x[j] = std::min(high[j], std::max(low[j], top[j] ? high[j] - right[i] : low[j] + right[i]));
        }
    }
    return possible;
  }

  // move nonbasic input j to its other end: v = width - v
  void flip(int64_t j) {
    const double width = high[other[j]] - low[other[j]];
    for (int64_t i = 0; i < cuts(); ++i) {
      right[i] -= table[i * inputs + j] * width;
      table[i * inputs + j] *= -1;
    }
    cost[j] *= -1;
    top[other[j]] ^= 1;
  }

  bool pivot(int64_t leaving, bool above) {
    const int64_t m = cuts(), n = inputs;
    double* row = &table[leaving * n];
    if (above) {  // measure the basic input from its upper end
      const int64_t j = basic[leaving];
      right[leaving] = (high[j] - low[j]) - right[leaving];
      for (int64_t k = 0; k < n; ++k) row[k] *= -1;
      top[j] ^= 1;
    }
    // right = -lack < 0, and grows where row[j] < 0; costs are <= 0, and the smallest cost / row comes first
    order.clear();
    double largest = 0;
    for (int64_t j = 0; j < n; ++j) largest = std::max(largest, std::fabs(row[j]));
    for (int64_t j = 0; j < n; ++j)
      if (row[j] < -1e-11 * largest) order.emplace_back(cost[j] / row[j], j);
    std::sort(order.begin(), order.end());
    double lack = -right[leaving];
    int64_t entering = -1;
    for (const auto& [ratio, j] : order) {
      const double width = other[j] < n ? high[other[j]] - low[other[j]] : std::numeric_limits<double>::infinity();
      if (lack + row[j] * width <= 0 || !std::isfinite(width)) {
        entering = j;
        break;
      }
      lack += row[j] * width;
    }
    if (entering < 0) {  // even with all inputs at their best ends
      if (basic[leaving] >= n) ray[basic[leaving] - n] = 1;
      for (int64_t j = 0; j < n; ++j)
        if (other[j] >= n) ray[other[j] - n] = std::max(0.0, row[j]);
      return false;
    }
    for (const auto& [ratio, j] : order) {
      if (j == entering) break;
      flip(j);
    }
    const double inverse = 1 / row[entering];
    for (int64_t j = 0; j < n; ++j) row[j] *= inverse;
    right[leaving] *= inverse;
    row[entering] = inverse;
    for (int64_t i = 0; i < m; ++i) {
      double* mine = &table[i * n];
      const double factor = mine[entering];
      if (i == leaving || factor == 0) continue;
      for (int64_t j = 0; j < n; ++j) mine[j] -= factor * row[j];
      mine[entering] = -factor * inverse;
      right[i] -= factor * right[leaving];
    }
    const double factor = cost[entering];
    for (int64_t j = 0; j < n; ++j) cost[j] -= factor * row[j];
    cost[entering] = -factor * inverse;
    std::swap(basic[leaving], other[entering]);
    return true;
  }
};

}  // namespace
