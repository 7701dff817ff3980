// One step of a branch and bound for many nodes: bounds on goals, or on a gradient, on parts of a network's domain.
// A node is a box, ranges of the units, and splits: units that are known to be below or above a knot. The step narrows
// them (ranges.h), bounds the goals by linear programs in x (linear.h), and chooses where to branch.
#include "ranges.h"
#include "signs.h"

namespace {

constexpr int64_t ROUNDS = 4;    // further forms of a goal, which touch where the last program had its maximum
constexpr double BINS = 64;      // into which the range of a unit is divided
constexpr double ENOUGH = 0.95;  // another round follows if the last one left at most this fraction of the bound
constexpr size_t MOST_COLUMNS = 256;  // of a zonotope whose longest vector is bounded by products of its columns

class Worker : Ranges {
 public:
  Worker(const ProofTask& task, const ProofNodes& nodes) : Ranges(task, nodes), score(total), forms(goals) {}

  void run(int64_t node) {
    check_time();
    n = node;
    step(false);
    // if all units are on one piece, the ends of the pieces still cut the region
    const double* bounds = nodes.bound + n * q.conditions;
    if (nodes.branch[2 * n] < 0 && std::any_of(bounds, bounds + q.conditions, [](double one) { return one >= 0; }))
      step(true);
  }

  // write only the forms of the goals on a box, to `cut`
  void write_forms(int64_t node) {
    check_time();
    narrow(node, false);
    for (int64_t g = 0; g < goals && !region.empty; ++g) {
      goal_form(g, nullptr);
      write_form(g);
    }
  }

 private:
  std::vector<double> score;  // how much the gap of each unit matters
  std::vector<Form> forms;

  void step(bool pinned) {
    nodes.branch[2 * n] = nodes.branch[2 * n + 1] = -1;
    for (int64_t j = 0; j < inputs; ++j)
      nodes.x[n * inputs + j] = nodes.box[(n * inputs + j) * 2] / 2 + nodes.box[(n * inputs + j) * 2 + 1] / 2;
    narrow(n, pinned);
    std::fill(score.begin(), score.end(), 0.0);
    if (!region.empty) q.gradient ? bound_gradient() : bound_goals();
    if (region.empty)
      std::fill_n(nodes.bound + n * q.conditions, q.conditions, NEVER);
    else
      choose();
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

  void write_form(int64_t g) {
    double* to = nodes.cut + (n * goals + g) * (inputs + 1);
    std::copy(forms[g].coefficients.begin(), forms[g].coefficients.end(), to);
    to[inputs] = forms[g].constant;
  }

  // add t <= goal - floor, in a region with the additional input t
  void exceed(Region& all, int64_t g) const {
    std::vector<double> row(inputs + 1, 1.0);
    for (int64_t j = 0; j < inputs; ++j) row[j] = -forms[g].coefficients[j];
    all.cut(row.data(), above(forms[g].constant, floor_of(g)));
  }

  // choose where lines touch the graphs of the units: at the values that the network has at x
  void evaluate(const double* x) {
    std::vector<double> y(x, x + inputs), next;
    for (int64_t k = 0; k < hidden; ++k) {
      next.assign(q.widths[k + 1], 0.0);
      for (int64_t i = 0; i < q.widths[k + 1]; ++i) {
        const int64_t unit = unit_of[k] + i, at = unit * (q.knots + 1);
        const double* w = row_of(k, i);
        double z = q.bias[unit];
        for (int64_t j = 0; j < q.widths[k]; ++j) z += w[j] * y[j];
        const int64_t on = piece(unit, z);
        next[i] = q.slope[at + on] * z + q.high[at + on];
        // in the middle of a bin of the range: at the ends any edge would do, and rounding would choose one
        const double width = high[unit] - low[unit], bin = std::floor(BINS * ((z - low[unit]) / width));
        touch[unit] = low[unit] + (std::min(BINS - 1, std::max(0.0, bin)) + 0.5) / BINS * width;
      }
      y.swap(next);
    }
  }

  void bound_goals() {
    std::vector<double> felt(total), x(inputs + 1), goal(inputs + 1, 0.0);
    goal[inputs] = 1;
    double best = NEVER;
    for (int64_t c = 0; c < q.conditions; ++c) {
      double& bound = nodes.bound[n * q.conditions + c];
      if (bound == NEVER) continue;
      const int64_t first = q.first[c], count = q.first[c + 1] - first;
      double least = -NEVER;
      for (int64_t g = first; g < first + count; ++g) {
        goal_form(g, nullptr);
        least = std::min(least, region.over_box(forms[g].coefficients.data(), above(forms[g].constant, floor_of(g))));
      }
      // maximise t >= 0, by which all goals exceed their floors
      Region all = region.with_input(0, std::max(least, 0.0));
      if (least < 0) all.empty = true;
      for (int64_t g = first; g < first + count; ++g) exceed(all, g);
      double top = all.maximise(goal.data(), 0, x.data());
      const auto kept_lines = lines;
      const auto kept_active = active;
      const auto kept_forms = forms;
      for (int64_t round = 0; round < ROUNDS && top > 0; ++round) {
        evaluate(x.data());
        for (int64_t k = 0; k < hidden; ++k) relax(k);
        for (int64_t g = first; g < first + count; ++g) {
          goal_form(g, nullptr);
          exceed(all, g);
        }
        check_time();
        const double before = top;
        top = std::min(top, all.maximise(goal.data(), 0, x.data()));
        if (top > ENOUGH * before) break;
      }
      lines = kept_lines, active = kept_active, forms = kept_forms;
      bound = top;
      if (bound > best) {
        best = bound;
        std::copy_n(x.begin(), inputs, nodes.x + n * inputs);
        std::fill(score.begin(), score.end(), 0.0);
        for (int64_t g = first; g < first + count; ++g) {
          double weight = 0;
          for (int64_t i = region.cuts() + g - first; i < all.cuts(); i += count) weight += all.multiplier(i);
          if (!(weight > 0)) continue;
          goal_form(g, felt.data());
          for (int64_t i = 0; i < total; ++i)
            score[i] += weight * (felt[i] > 0 ? felt[i] * lines[i].up_gap : -felt[i] * lines[i].down_gap);
        }
      }
    }
    for (int64_t g = 0; g < goals; ++g) {
      nodes.cut[(n * goals + g) * (inputs + 1) + inputs] = std::numeric_limits<double>::quiet_NaN();
      if (q.conditions == 1 && !forms[g].coefficients.empty() && best != NEVER) write_form(g);
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
        check_time();
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
    // terms bound the centre and every column, which are sums of products of at most this many factors
    const double error = gamma_of(operations + 4 * total) * (2.0 + static_cast<double>(columns.size()));
    for (int64_t j = 0; j < inputs; ++j) {
      double spread = error * terms[j];
      for (const auto& column : columns) spread += std::fabs(column[j]) * (1 + 1e-12);
      nodes.gradient[(n * inputs + j) * 2] = centre[j] - spread - 4 * UNIT * std::fabs(centre[j]);
      nodes.gradient[(n * inputs + j) * 2 + 1] = centre[j] + spread + 4 * UNIT * std::fabs(centre[j]);
    }
    nodes.bound[n * q.conditions] = longest(centre, columns, terms, error);
    for (size_t e = 0; e < owners.size(); ++e)
      for (int64_t j = 0; j < inputs; ++j) score[owners[e]] += std::fabs(columns[e][j]);
  }

  // A bound on the 2-norm of all g = centre + sum of e_i column_i, |e_i| <= 1, that are off by error * terms. The square
  // is at most |centre|^2 + 2 sum |centre column_i| + sum |column_i column_k|: products cancel where their sizes do not.
  double longest(const std::vector<double>& centre, const std::vector<std::vector<double>>& columns,
                 const std::vector<double>& terms, double error) const {
    const double more = gamma_of(4 * (static_cast<int64_t>(columns.size()) + inputs) + 64);
    if (columns.size() > MOST_COLUMNS) return -NEVER;
    double square = 0, whole = 0, off = 0;
    auto times = [&](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (int64_t j = 0; j < inputs; ++j) sum += a[j] * b[j];
      return std::fabs(sum);
    };
    for (size_t e = 0; e < columns.size(); ++e) {
      square += 2 * times(centre, columns[e]) + times(columns[e], columns[e]);
      for (size_t f = 0; f < e; ++f) square += 2 * times(columns[e], columns[f]);
    }
    for (int64_t j = 0; j < inputs; ++j) {
      double size = std::fabs(centre[j]);
      for (const auto& column : columns) size += std::fabs(column[j]);
      whole += size * size;
      off += error * terms[j] + 4 * UNIT * size;
    }
    return (std::sqrt(square + times(centre, centre) + more * whole + FLOOR) + off) * (1 + 16 * UNIT);
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

  // set x to a point far from all cuts; the region is empty if there is none
  void centre_point() {
    if (!region.cuts()) return;
    Region all = region.shrunk();
    std::vector<double> goal(inputs + 1, 0.0), x(inputs + 1);
    goal[inputs] = 1;
    region.empty = all.maximise(goal.data(), 0, x.data()) == NEVER;
    std::copy_n(x.begin(), inputs, nodes.x + n * inputs);
  }

  // the width of an input; 0 if its halves would not be smaller
  double divisible(int64_t j) const {
    const double middle = (region.low[j] + region.high[j]) / 2;
    return middle > region.low[j] && middle < region.high[j] ? region.high[j] - region.low[j] : 0;
  }

  void choose() {
    // where the goals are exact, the cuts need not be
    if (std::none_of(score.begin(), score.end(), [](double one) { return one > 0; }))
      for (int64_t i = 0; i < total; ++i) score[i] = lines[i].up_gap + lines[i].down_gap;
    // splitting a unit removes its gap; splitting an input halves the share of the gaps that it causes
    int64_t unit = -1, input = -1;
    double best = 0;
    std::vector<double> share(inputs, 0.0);
    for (int64_t i = 0; i < total; ++i) {
      if (!(score[i] > 0)) continue;
      if (score[i] > best) best = score[i], unit = i;
      double sum = 0;
      for (int64_t j = 0; j < inputs; ++j) sum += std::fabs(shape[i * inputs + j]) * divisible(j);
      if (!(sum > 0)) continue;
      for (int64_t j = 0; j < inputs; ++j) share[j] += score[i] * std::fabs(shape[i * inputs + j]) * divisible(j) / sum;
    }
    if (unit < 0) {  // nothing matters, or numbers are too large: any unit that may cross a knot
      for (int64_t i = 0; i < total && unit < 0; ++i)
        if (crosses(i)) unit = i;
      if (unit < 0) return;
      nodes.branch[2 * n] = inputs + unit;
      nodes.branch[2 * n + 1] = inner_knot(unit);
      return;
    }
    double most = 0;
    for (int64_t j = 0; j < inputs; ++j)
      if (share[j] > most) most = share[j], input = j;
    // the gap of a gradient does not shrink before the unit is on one piece
    if (input >= 0 && (q.gradient ? 8.0 : 1.0) * best < most) {
      nodes.branch[2 * n] = input;
      return;
    }
    nodes.branch[2 * n] = inputs + unit;
    nodes.branch[2 * n + 1] = lines[unit].up_gap >= lines[unit].down_gap ? lines[unit].up_knot : lines[unit].down_knot;
  }

};

// Do the work for all nodes, which are shared by the threads that pass the same counter; it starts at 0. Return 0, 1 if
// the time ran out first, or NO_MEMORY.
int64_t share(const ProofTask* task, const ProofNodes* nodes, int64_t* next, void (Worker::*work)(int64_t)) {
  return guarded([=] {
    Worker worker(*task, *nodes);
    try {
      for (int64_t i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < nodes->nodes;) (worker.*work)(i);
    } catch (const Stopped&) {
      return 1;
    }
    return 0;
  });
}

}  // namespace

extern "C" {

// Bound the nodes.
int64_t plunit_prove(const ProofTask* task, const ProofNodes* nodes, int64_t* next) {
  return share(task, nodes, next, &Worker::run);
}

// Bound the goals on the boxes of the nodes by forms; only box, range and cut of the nodes are used.
int64_t plunit_forms(const ProofTask* task, const ProofNodes* nodes, int64_t* next) {
  return share(task, nodes, next, &Worker::write_forms);
}

// Bound sums of forms with any signs (signs.h).
int64_t plunit_signs(const SignTask* task, int64_t* next) {
  return guarded([=] {
    Signs signs(*task);
    for (int64_t i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < task->cases;) signs.run(i);
    return 0;
  });
}
}
