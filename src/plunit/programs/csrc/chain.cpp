// Steps of Adam on a density: a chain of blocks (affine map W = P L U, activation) and a last affine map, from data to
// a standard normal. The loss of a sample is |z|^2 / 2 - log|det dz/dx|, without the constant.
//
// A call trains one member, with samples on the lanes, in chunks that stay in the caches. Parameters are ordered by
// kind: lower triangles, upper triangles, log-diagonals and biases of all maps, then log alpha, log c and logit rho of
// all units, if the activation has them. See plunit.densities.density_network.Architecture.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "rows.h"
#include "units.h"

#define SAMPLE_ARRAYS(FIELD)                                \
  FIELD(const float*, x) /* [count, features] */            \
  FIELD(const float*, weight) /* [count], or null, all 1 */ \
  FIELD(int64_t, count)
STRUCT(SampleArrays, SAMPLE_ARRAYS)

#define CHAIN_TASK(FIELD)                                                                              \
  FIELD(int64_t, features)                                                                             \
  FIELD(int64_t, blocks)                                                                               \
  FIELD(int64_t, sides) /* 1 for LeakyReLU, else 2 */                                                  \
  FIELD(int64_t, learned) /* 3 with rho, 2 with c, else 1 */                                           \
  FIELD(const int64_t*, order) /* [maps, features]: row i of W is row order[i] of L U */               \
  FIELD(const float*, sign) /* [maps, features] of the diagonal of U */                                \
  FIELD(float, limit) /* bound on log-diagonals, log alpha, log c and logit rho */                     \
  FIELD(float, tolerance) /* see patience */                                                           \
  FIELD(SampleArrays, training)                                                                        \
  FIELD(SampleArrays, tests) /* tests.count is 0 without validation */                                 \
  FIELD(int64_t, batch) /* samples of a step */                                                        \
  FIELD(int64_t, nearest) /* neighbours of a kink */                                                   \
  FIELD(int64_t, every) /* steps between validations */                                                \
  FIELD(uint64_t, seed) /* of the draws */                                                             \
  FIELD(int64_t, first)                                                                                \
  FIELD(int64_t, steps)                                                                                \
  FIELD(int64_t, patience) /* maximum number of validations without an improvement by the tolerance */ \
  FIELD(const float*, rate) /* lr / (1 - beta1^t) of each step */                                      \
  FIELD(const float*, root) /* 1 / sqrt(1 - beta2^t) of each step */                                   \
  FIELD(const float*, rho) /* of each step, where it is not learned; 0 for kinks */                    \
  FIELD(const float*, share) /* of each step: the weight of the new parameters in the mean */          \
  FIELD(float*, theta) /* [parameters], as are Adam's moments and the running mean */                  \
  FIELD(float*, mean)                                                                                  \
  FIELD(float*, square)                                                                                \
  FIELD(float*, average)                                                                               \
  FIELD(float*, best) /* the running mean with the lowest loss on tests */                             \
  FIELD(float*, radii)  /* [blocks, features], see `Shape` */                                          \
  FIELD(float*, looks) /* the loss on tests at each validation */                                      \
  FIELD(float, best_loss) /* in and out, as the next three: the lowest loss on tests */                \
  FIELD(float, mark) /* the last loss on tests that was better by the tolerance */                     \
  FIELD(int64_t, best_step) /* the number of steps after which that was found */                       \
  FIELD(int64_t, waited) /* the number of validations since the mark */
STRUCT(ChainTask, CHAIN_TASK)

namespace {

constexpr int64_t REFRESH = 8;  // steps between estimates of the density at kinks
constexpr int64_t SPAN = 128;   // the maximum number of samples that are computed together

int64_t filled(int64_t count) { return (count + SIXTEEN - 1) / SIXTEEN * SIXTEEN; }

// Arrays of floats that start at multiples of 64 bytes and have room up to the next multiple.
class Memory {
 public:
  float* room(int64_t count) {
    held.emplace_back(new char[(filled(count) + SIXTEEN) * sizeof(float)]());
    auto address = reinterpret_cast<uintptr_t>(held.back().get());
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
  }

 private:
  std::vector<std::unique_ptr<char[]>> held;
};

// sums += factor * row, for elements first to last
inline void add_multiple(float* sums, float factor, const float* row, int64_t first, int64_t last) {
  for (int64_t j = first; j < last; ++j) sums[j] += factor * row[j];
}

class Member {
 public:
  explicit Member(ChainTask& task)
      : k(task), n(k.features), maps(k.blocks + 1), units(k.blocks * n), triangle(n * (n - 1) / 2) {
    product = n == 1 ? mapped<1> : n == 2 ? mapped<2> : n == 3 ? mapped<3> : mapped<0>;
    const int64_t sizes[] = {maps * triangle, maps * triangle, maps * n, maps * n, units, units, units};
    int64_t* starts[] = {&lower, &upper, &diagonal, &bias, &alpha, &c, &rho};
    parameters = 0;
    for (int i = 0; i < 4 + k.learned; ++i) *starts[i] = parameters, parameters += sizes[i];
    theta = read(k.theta), mean = read(k.mean), square = read(k.square), average = read(k.average);
    best = read(k.best), grad = memory.room(parameters);
    left = memory.room(n * n), right = memory.room(n * n), whole = memory.room(n * n);
    in_left = memory.room(n * n), in_right = memory.room(n * n);
    weight = memory.room(maps * n * n), weight_sums = memory.room(maps * n * n * SIXTEEN);
    bias_sums = memory.room(maps * n * SIXTEEN);
    for (float*& sums : unit_sums) sums = memory.room(units * SIXTEEN);
    pivots = memory.room(maps * n), alphas = memory.room(units), cs = memory.room(units), rhos = memory.room(units);
    inputs = memory.room(maps * n * SPAN), before = memory.room(units * SPAN);
    delta = memory.room(n * SPAN), next = memory.room(n * SPAN);
    logs = memory.room(SPAN), share = memory.room(SPAN), in_log = memory.room(SPAN);
    shapes.resize(units);
    rows.resize(k.batch);
    if (k.learned < 3) distance.resize(units * k.batch);
  }

  // Returns the number of steps taken; a member that has run out of patience takes none.
  int64_t train() {
    Draws<1> draws(&k.seed, k.training.count, k.first * k.batch);
    int64_t t = 0;
    for (; t < k.steps && k.waited < k.patience; ++t) {
      for (int64_t i = 0; i < k.batch; i += CHUNK) {
        const int64_t count = std::min(CHUNK, k.batch - i);
        std::copy_n(draws.next(count), count, rows.begin() + i);
        for (int64_t s = 0; s < count; ++s) __builtin_prefetch(k.training.x + rows[i + s] * n);
      }
      imply(theta, k.rho[t]);
      if (!bent && (k.first + t) % REFRESH == 0) find_radii();
      differentiate();
      adam(t);
      if (k.tests.count && (k.first + t + 1) % k.every == 0) validate(k.first + t + 1, k.rho[t]);
    }
    write(theta, k.theta), write(mean, k.mean), write(square, k.square), write(average, k.average), write(best, k.best);
    return t;
  }

 private:
  ChainTask& k;
  const int64_t n, maps, units, triangle;
  int64_t parameters, lower, upper, diagonal, bias, alpha, c, rho;
  Memory memory;
  float *theta, *mean, *square, *average, *best, *grad;
  float *left, *right, *whole, *in_left, *in_right, *weight, *weight_sums, *bias_sums, *unit_sums[3];
  float *pivots, *alphas, *cs, *rhos;
  float *inputs, *before, *delta, *next, *logs, *share, *in_log;  // of a chunk, rows of SPAN samples
  const float* biases;
  std::vector<Shape> shapes;
  std::vector<int64_t> rows;
  std::vector<float> distance;  // of each kink to the samples of the batch
  bool bent = false;
  Kind unit;
  decltype(&mapped<0>) product;

  float* read(const float* from) {
    float* to = memory.room(parameters);
    std::copy_n(from, parameters, to);
    return to;
  }

  void write(const float* from, float* to) { std::copy_n(from, parameters, to); }

  float* sums(int which, int64_t index) { return unit_sums[which] + index * SIXTEEN; }

  // exp of `count` bounded numbers
  void exponentials(const float* raw, float* to, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
      Vec x{};
      std::memcpy(&x, raw + i, sizeof(float) * std::min<int64_t>(LANES, count - i));
      store(to + i, Exponential(limited(x, -k.limit, k.limit)).value());
    }
  }

  // matrices and units from the parameters; rho = 0 means kinks
  void imply(const float* from, float fixed_rho) {
    bent = k.learned == 3 || fixed_rho > 0.0f;
    unit = bent ? kind<Bent>() : k.sides == 2 ? kind<Kinked<true>>() : kind<Kinked<false>>();
    exponentials(from + diagonal, pivots, maps * n);
    for (int64_t i = 0; i < maps * n; ++i) pivots[i] *= k.sign[i];
    for (int64_t map = 0; map < maps; ++map) multiply(from, map);
    exponentials(from + alpha, alphas, units);
    if (k.learned > 1) exponentials(from + c, cs, units);
    if (k.learned > 2)
      for (int64_t i = 0; i < units; i += LANES) {
        Vec x{};
        std::memcpy(&x, from + rho + i, sizeof(float) * std::min<int64_t>(LANES, units - i));
        store(rhos + i, sigmoid(limited(x, -k.limit, k.limit)));
      }
    for (int64_t i = 0; i < units; ++i) {
      const float part = k.learned > 2 ? rhos[i] : fixed_rho, raw = from[alpha + i];
      shapes[i] = {alphas[i], cs[i], part * cs[i], k.radii[i], std::min(std::max(raw, -k.limit), k.limit)};
    }
    biases = from + bias;
  }

  // L by rows, and U by rows or by columns
  void factor(const float* from, int64_t map, bool by_rows) {
    const float *below = from + lower + map * triangle, *above = from + upper + map * triangle;
    const int64_t row = by_rows ? n : 1, column = by_rows ? 1 : n;
    std::fill_n(left, n * n, 0.0f), std::fill_n(right, n * n, 0.0f);
    for (int64_t i = 0; i < n; ++i) {
      left[i * n + i] = 1.0f, right[i * n + i] = pivots[map * n + i];
      for (int64_t j = 0; j < i; ++j) left[i * n + j] = *below++, right[j * row + i * column] = *above++;
    }
  }

  void multiply(const float* from, int64_t map) {
    factor(from, map, true);
    std::fill_n(whole, n * n, 0.0f);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t m = 0; m <= i; ++m) add_multiple(whole + i * n, left[i * n + m], right + m * n, m, n);
    for (int64_t i = 0; i < n; ++i) std::copy_n(whole + k.order[map * n + i] * n, n, weight + (map * n + i) * n);
  }

  // Copy samples to rows of features; the padding to a multiple of sixteen has weight 0.
  void fetch(const SampleArrays& from, const int64_t* which, int64_t first, int64_t count, float scale) {
    for (int64_t s = 0; s < filled(count); ++s) {
      const int64_t row = s >= count ? 0 : which ? which[s] : first + s;
      for (int64_t j = 0; j < n; ++j) inputs[j * SPAN + s] = s < count ? from.x[row * n + j] : 0.0f;
      share[s] = s < count ? scale * (from.weight ? from.weight[row] : 1.0f) : 0.0f;
      in_log[s] = -share[s];
    }
  }

  // z of the chunk, in `next`
  void forward(int64_t samples, float* log_slopes) {
    for (int64_t map = 0; map < maps; ++map) {
      const float* x = inputs + map * n * SPAN;
      float* u = map < k.blocks ? before + map * n * SPAN : next;
      product(weight + map * n * n, n, 1, biases + map * n, x, u, n, SPAN, samples);
      if (map < k.blocks)
        for (int64_t i = 0; i < n; ++i)
          unit.forward(shapes[map * n + i], u + i * SPAN, inputs + ((map + 1) * n + i) * SPAN, log_slopes, samples);
    }
  }

  // the gradient, as partial sums of all its components
  void backward(int64_t samples) {
    for (int64_t i = 0; i < n; ++i) {
      Vec sum[PARTS] = {};
      for (int64_t s = 0; s < samples; s += SIXTEEN)
        for (int p = 0; p < PARTS; ++p) {
          const int64_t place = s + p * LANES;
          const Vec g = load(next + i * SPAN + place) * load(share + place);
          store(delta + i * SPAN + place, g);
          sum[p] += g;
        }
      add_to(bias_sums + (k.blocks * n + i) * SIXTEEN, sum);
    }
    for (int64_t map = k.blocks; map >= 0; --map) {
      crossed(delta, inputs + map * n * SPAN, weight_sums + map * n * n * SIXTEEN, n, SPAN, samples);
      if (map == 0) break;
      product(weight + map * n * n, 1, n, nullptr, delta, next, n, SPAN, samples);
      std::swap(delta, next);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (map - 1) * n + i;
        const Sums to{sums(0, at), sums(1, at), sums(2, at), bias_sums + at * SIXTEEN};
        unit.backward(shapes[at], before + at * SPAN, in_log, delta + i * SPAN, to, samples);
      }
    }
  }

  void differentiate() {
    std::fill_n(weight_sums, maps * n * n * SIXTEEN, 0.0f), std::fill_n(bias_sums, maps * n * SIXTEEN, 0.0f);
    for (float* all : unit_sums) std::fill_n(all, units * SIXTEEN, 0.0f);
    float total = 0.0f;  // of the weights
    for (int64_t i = 0; i < k.batch; i += SPAN) {
      const int64_t count = std::min(SPAN, k.batch - i), samples = filled(count);
      fetch(k.training, rows.data() + i, 0, count, 1.0f / static_cast<float>(k.batch));
      for (int64_t s = 0; s < count; ++s) total += share[s];
      forward(samples, nullptr), backward(samples);
    }
    for (int64_t map = 0; map < maps; ++map) split(map, total);
    for (int64_t i = 0; i < maps * n; ++i) grad[bias + i] = folded(bias_sums + i * SIXTEEN);
    for (int64_t i = 0; i < units; ++i) {
      const Shape& shape = shapes[i];
      const float in_w = folded(sums(2, i)), part = shape.w / shape.c;
      grad[alpha + i] = inside(alpha + i) * folded(sums(0, i)) * shape.alpha;
      if (k.learned > 1) grad[c + i] = inside(c + i) * (folded(sums(1, i)) + (bent ? in_w * part : 0.0f)) * shape.c;
      if (k.learned > 2) grad[rho + i] = inside(rho + i) * in_w * shape.c * (rhos[i] * (1.0f - rhos[i]));
    }
  }

  // numbers beyond the limit have no effect
  float inside(int64_t i) const { return std::fabs(theta[i]) <= k.limit ? 1.0f : 0.0f; }

  // The gradients in L and U from that in W = P L U, G in the order of L U: G U^T below and L^T G above the diagonal.
  void split(int64_t map, float total) {
    factor(theta, map, false);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        whole[k.order[map * n + i] * n + j] = folded(weight_sums + ((map * n + i) * n + j) * SIXTEEN);
    std::fill_n(in_left, n * n, 0.0f), std::fill_n(in_right, n * n, 0.0f);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t m = 0; m < n; ++m) {
        add_multiple(in_left + i * n, whole[i * n + m], right + m * n, 0, std::min(m + 1, i));
        if (m >= i) add_multiple(in_right + i * n, left[m * n + i], whole + m * n, i, n);
      }
    float *below = grad + lower + map * triangle, *above = grad + upper + map * triangle;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) *below++ = in_left[i * n + j], *above++ = in_right[j * n + i];
      const int64_t at = diagonal + map * n + i;
      grad[at] = inside(at) * (in_right[i * n + i] * right[i * n + i] - total);
    }
  }

  void adam(int64_t t) {
    for (int64_t i = 0; i < parameters; i += LANES) {
      const Vec g = load(grad + i), m = fused(g - load(mean + i), splat(0.1f), load(mean + i));
      const Vec v = fused(g * g, splat(0.001f), load(square + i) * 0.999f);
      const Vec x = load(theta + i) - m / fused(root(v), splat(k.root[t]), splat(1e-8f)) * k.rate[t];
      const Vec mixed = fused(x - load(average + i), splat(k.share[t]), load(average + i));
      store(mean + i, m), store(square + i, v), store(theta + i, x), store(average + i, mixed);
    }
  }

  // The distance from each kink to its k-th nearest sample of the batch.
  void find_radii() {
    for (int64_t i = 0; i < k.batch; i += SPAN) {
      const int64_t count = std::min(SPAN, k.batch - i);
      fetch(k.training, rows.data() + i, 0, count, 1.0f), forward(filled(count), nullptr);
      for (int64_t at = 0; at < units; ++at)
        for (int64_t s = 0; s < count; ++s) {
          const float u = before[at * SPAN + s];
          const float far = std::fabs((k.sides == 2 ? std::fabs(u) : u) - shapes[at].c);
          // the NaN of a diverging member cannot be ordered
          distance[at * k.batch + i + s] = far == far ? far : std::numeric_limits<float>::infinity();
        }
    }
    for (int64_t at = 0; at < units; ++at) {
      float* first = distance.data() + at * k.batch;
      std::nth_element(first, first + k.nearest - 1, first + k.batch);
      k.radii[at] = shapes[at].radius = first[k.nearest - 1];
    }
  }

  // A chunk's losses are summed as floats, chunks as doubles.
  void validate(int64_t step, float fixed_rho) {
    imply(average, fixed_rho);
    double sum = 0.0, total = 0.0;
    for (int64_t i = 0; i < k.tests.count; i += SPAN) {
      const int64_t count = std::min(SPAN, k.tests.count - i);
      fetch(k.tests, nullptr, i, count, 1.0f);
      std::fill_n(logs, SPAN, 0.0f);
      forward(filled(count), logs);
      float part = 0.0f, weights = 0.0f;
      for (int64_t s = 0; s < count; ++s) {
        float loss = -logs[s];
        for (int64_t j = 0; j < n; ++j) loss += 0.5f * next[j * SPAN + s] * next[j * SPAN + s];
        part += share[s] * loss, weights += share[s];
      }
      sum += part, total += weights;
    }
    float linear = 0.0f;
    for (int64_t i = 0; i < maps * n; ++i) linear += std::min(std::max(average[diagonal + i], -k.limit), k.limit);
    const float loss = static_cast<float>(sum / total) - linear;
    k.looks[step / k.every - 1] = loss;
    const bool progress = loss < k.mark - k.tolerance;
    if (loss < k.best_loss) {
      std::copy_n(average, parameters, best);
      k.best_loss = loss, k.best_step = step;
    }
    k.mark = progress ? loss : k.mark;
    k.waited = progress ? 0 : k.waited + 1;
  }
};

}  // namespace

extern "C" {

// Returns the number of steps, or NO_MEMORY; then the member is unchanged, because all memory is allocated before the
// first step.
int64_t plunit_chain(ChainTask* task) {
  return guarded([=] { return Member(*task).train(); });
}
}
