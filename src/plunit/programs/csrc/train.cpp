// Steps of Adam on many small networks, a vector of members at a time.
//
// A block of LANES members keeps its parameters and Adam's moments for all steps of a call, and processes the points of
// a step in chunks whose activations stay in the caches. Blocks never interact, so a member's numbers depend neither on
// its neighbours nor on the number of threads. Arrays are [rows, members] with members contiguous; a layer's rows are
// its weights [out, in], then its biases; if learned, the raw alpha and raw c of each activation follow the last layer.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "activations.h"
#include "level.h"
#include "losses.h"
#include "outputs.h"
#include "product.h"
#include "rows.h"
#include "squares.h"

#define TASK(FIELD)                                                                                             \
  FIELD(int64_t, members) /* the row stride of all arrays, a multiple of LANES */                               \
  FIELD(int64_t, depth)                                                                                         \
  FIELD(const int64_t*, widths)                                                                                 \
  FIELD(const char*, activation)                                                                                \
  FIELD(const char*, loss)                                                                                      \
  FIELD(int64_t, learned)                                                                                       \
  FIELD(float, limit) /* bound on the raw alpha and c */                                                        \
  FIELD(float, tolerance) /* see patience */                                                                    \
  FIELD(int64_t, first)                                                                                         \
  FIELD(int64_t, steps)                                                                                         \
  FIELD(int64_t, stride)                                                                                        \
  FIELD(RowSources, training)                                                                                   \
  FIELD(RowSources, tests) /* tests.count is 0 without validation */                                            \
  FIELD(int64_t, batch) /* rows drawn for each step; 0 for all rows */                                          \
  FIELD(const uint64_t*, seeds) /* [members], of the draws */                                                   \
  FIELD(int64_t, held) /* rows that a member does not draw */                                                   \
  FIELD(const int64_t*, firsts) /* [members], where they begin; null without draws */                           \
  FIELD(int64_t, every) /* steps from one validation to the next */                                             \
  FIELD(int64_t, patience) /* a member ends after this many validations that are not better by the tolerance */ \
  FIELD(const float*, rate) /* schedule and the correction of the mean, of each step */                         \
  FIELD(const float*, root) /* correction of the root of the square, of each step */                            \
  FIELD(const float*, schedule) /* the factor of the step size, of each step */                                 \
  FIELD(const float*, share) /* of each step: the weight of the new parameters in the mean; null without */     \
  FIELD(const float*, lr) /* [members] */                                                                       \
  FIELD(const float*, decay) /* [members] */                                                                    \
  FIELD(float*, theta) /* [parameters, members], as are Adam's moments and the running mean */                  \
  FIELD(float*, mean)                                                                                           \
  FIELD(float*, square)                                                                                         \
  FIELD(float*, running)                                                                                        \
  FIELD(const float*, alpha) /* [depth - 1, members] */                                                         \
  FIELD(const float*, c) /* [depth - 1, members] */                                                             \
  FIELD(float*, history) /* the loss before step t, for t a multiple of stride */                               \
  FIELD(float*, best) /* the parameters with the lowest loss on tests */                                        \
  FIELD(float*, best_loss) /* [members]: that loss */                                                           \
  FIELD(int64_t*, best_step) /* [members]: the number of steps after which it was found */                      \
  FIELD(float*, mark) /* [members]: the last loss on tests that was better by the tolerance */                  \
  FIELD(int32_t*, waited) /* [members]: the number of validations since */                                      \
  FIELD(float*, looks) /* the loss on tests at each validation */
STRUCT(Task, TASK)

namespace {

// One layer on `points` points, a multiple of 4: h = a(W x + b) and d = a'(W x + b).
// The strides of x, h and d are [units, stride]; weight is [outputs, inputs].
struct Layer {
  int64_t inputs, outputs, stride;
  Vec *weight, *bias, *weight_grad, *bias_grad;
  Vec *input, *output, *slope;
};

template <class Function>
struct Apply {
  Vec *h, *d, alpha, c;
  int64_t stride;
  void operator()(int64_t row, int64_t column, Vec x) const {
    Function::apply(x, alpha, c, h[row * stride + column], d[row * stride + column]);
  }
};

template <class Function>
void activate(const Layer& layer, int64_t points, Vec alpha, Vec c) {
  product_by_4(Apply<Function>{layer.output, layer.slope, alpha, c, layer.stride}, {layer.bias, 1, 0},
               {layer.weight, layer.inputs, 1}, layer.outputs, {layer.input, 1, layer.stride}, points, layer.inputs);
}

// The gradient before an activation: the gradient after it, through the weights, times the slope.
struct Scale {
  Vec* to;
  const Vec* slope;
  int64_t stride;
  void operator()(int64_t row, int64_t column, Vec sum) const {
    to[row * stride + column] = sum * slope[row * stride + column];
  }
};

Vec total(const Vec* values, int64_t count) {
  Vec sum[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int q = 0; q < 4; ++q) sum[q] += values[i + q];
  for (; i < count; ++i) sum[0] += values[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

using Activate = decltype(&activate<Identity>);

Activate find_activation(const char* name) {
  return pick_activation<Activate>(name, [](auto entry) { return activate<typename decltype(entry)::Function>; });
}

const Loss& find_loss(const char* name) {
  const Loss* found = LOSSES;
  while (std::strcmp(found->name, name)) ++found;
  return *found;
}

class Block {
 public:
  Block(const Task& task, int64_t member)
      : k(task), member(member), activation(find_activation(k.activation)), loss(find_loss(k.loss)) {
    int64_t rows = 2 * k.learned * (k.depth - 1), units = k.widths[0], widest = k.widths[0];
    for (int64_t l = 0; l < k.depth; ++l) {
      rows += k.widths[l + 1] * (k.widths[l] + 1);
      units += k.widths[l + 1];
      widest = widest < k.widths[l + 1] ? k.widths[l + 1] : widest;
    }
    parameters = rows;
    chunk = units <= 16 ? CHUNK : units <= 64 ? CHUNK / 2 : CHUNK / 4;  // so that they stay in the first-level cache
    theta = room(rows), mean = room(rows), square = room(rows), grad = room(rows);
    running = k.share ? room(rows) : theta;
    alpha = room(k.depth), c = room(k.depth);
    target = room(k.widths[k.depth] * chunk), weight = room(chunk);
    delta = room(widest * chunk), next = room(widest * chunk);
    Vec *from = theta, *from_grad = grad, *values = room(units * chunk);
    for (int64_t l = 0; l < k.depth; ++l) {
      int64_t in = k.widths[l], out = k.widths[l + 1];
      layers.push_back({in, out, chunk, from, from + in * out, from_grad, from_grad + in * out, values, values + in * chunk,
                        room(out * chunk)});
      from += (in + 1) * out, from_grad += (in + 1) * out, values += in * chunk;
    }
    raw = from, raw_grad = from_grad;
  }

  void train() {
    read(k.theta, theta, parameters), read(k.mean, mean, parameters), read(k.square, square, parameters);
    if (k.share) read(k.running, running, parameters);
    read(k.alpha, alpha, k.depth - 1), read(k.c, c, k.depth - 1);
    read(k.best_loss, &best_loss, 1), read(k.mark, &mark, 1);
    std::memcpy(&waited, k.waited + member, sizeof waited);
    lr = load(k.lr + member), decay = load(k.decay + member);
    const int64_t count = k.batch ? k.batch : k.training.count;
    Draws<LANES> draws(k.batch ? k.seeds + member : nullptr, k.training.count, k.first * k.batch,
                       k.firsts ? k.firsts + member : nullptr, k.held);
    for (int64_t t = 0; t < k.steps && alive(); ++t) {
      if (k.learned) constrain();
      for (int64_t i = 0; i < parameters; ++i) grad[i] = Vec{};
      Vec sum{};
      for (int64_t p = 0; p < count; p += chunk) {
        int64_t points = count - p < chunk ? count - p : chunk;
        // a chunk with all the data is fetched only once
        if (t == 0 || k.batch || count > chunk || k.training.x.step || k.training.y.step || k.tests.count)
          fetch(k.training, t, p, points, k.batch ? draws.next(points) : nullptr);
        sum += score(points, 1.0f / static_cast<float>(count));
        for (int64_t l = k.depth - 1; l >= 0; --l) backward(l, points);
      }
      if ((k.first + t) % k.stride == 0)
        store(k.history + (k.first + t) / k.stride * k.members + member,
              ended() ? splat(std::numeric_limits<float>::quiet_NaN()) : sum / static_cast<float>(count));
      adam(t);
      if (k.share) average(k.share[t]);
      if (k.tests.count && (k.first + t + 1) % k.every == 0) validate(k.first + t + 1);
    }
    write(theta, k.theta, parameters), write(mean, k.mean, parameters), write(square, k.square, parameters);
    if (k.share) write(running, k.running, parameters);
    write(&best_loss, k.best_loss, 1), write(&mark, k.mark, 1);
    std::memcpy(k.waited + member, &waited, sizeof waited);
  }

  // Write the outputs of the members from `first` at the points of tests, [outputs, points, members].
  void evaluate(int64_t first, float* to) {
    member = first;
    read(k.theta, theta, parameters);
    read(k.alpha, alpha, k.depth - 1), read(k.c, c, k.depth - 1);
    if (k.learned) constrain();
    for (int64_t p = 0; p < k.tests.count; p += chunk) {
      const int64_t points = std::min(chunk, k.tests.count - p);
      copy(k.tests.x, k.widths[0], 0, p, points, nullptr, member, layers[0].input, chunk);
      forward(points);
      for (int64_t o = 0; o < k.widths[k.depth]; ++o)
        write(layers.back().output + o * chunk, to + (o * k.tests.count + p) * k.members, points);
    }
  }

 private:
  const Task& k;
  int64_t member;
  const Activate activation;
  const Loss& loss;
  int64_t parameters, chunk;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<Layer> layers;
  Vec *theta, *mean, *square, *running, *grad, *alpha, *c, *raw, *raw_grad, *target, *weight, *delta, *next;
  Vec best_loss, mark, lr, decay;
  Mask waited;

  Vec* room(int64_t vectors) {
    memory.emplace_back(new char[(vectors + 1) * sizeof(Vec)]());
    auto address = reinterpret_cast<uintptr_t>(memory.back().get());
    return reinterpret_cast<Vec*>((address + sizeof(Vec) - 1) / sizeof(Vec) * sizeof(Vec));
  }

  void read(const float* from, Vec* to, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) to[i] = load(from + i * k.members + member);
  }

  void write(const Vec* from, float* to, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) store(to + i * k.members + member, from[i]);
  }

  void fetch(const RowSources& rows, int64_t step, int64_t first, int64_t points, const int64_t* drawn) {
    copy(rows.x, k.widths[0], step, first, points, drawn, member, layers[0].input, chunk);
    copy(rows.y, k.widths[k.depth], step, first, points, drawn, member, target, chunk);
    if (rows.weight.values)
      copy(rows.weight, 1, step, first, points, drawn, member, weight, chunk);
    else
      for (int64_t p = 0; p < points; ++p) weight[p] = splat(1.0f);
  }

  Vec clipped(Vec x) {
    Vec low = x < -k.limit ? splat(-k.limit) : x;
    return low > k.limit ? splat(k.limit) : low;
  }

  void constrain() {
    for (int64_t l = 0; l + 1 < k.depth; ++l) {
      alpha[l] = sigmoid(clipped(raw[l]));
      c[l] = Exponential(clipped(raw[k.depth - 1 + l])).value();
    }
  }

  void forward(int64_t points) {
    const int64_t filled = (points + 3) / 4 * 4;  // the padding of the last tile is never used
    for (int64_t l = 0; l + 1 < k.depth; ++l) activation(layers[l], filled, alpha[l], c[l]);
    activate<Identity>(layers.back(), filled, Vec{}, Vec{});
  }

  // the sum of the points' losses; delta becomes the gradient of scale times it in the network's output
  Vec score(int64_t points, float scale) {
    forward(points);
    return loss.apply({layers.back().outputs, chunk, points, layers.back().output, target, weight, delta, scale});
  }

  void backward(int64_t l, int64_t points) {
    const Layer& layer = layers[l];
    for (int64_t o = 0; o < layer.outputs; ++o) layer.bias_grad[o] += total(delta + o * chunk, points);
    Matrix gradient{layer.weight_grad, layer.inputs, 1};
    product(Keep{gradient}, gradient, {delta, chunk, 1}, layer.outputs, {layer.input, chunk, 1}, layer.inputs, points);
    if (l == 0) return;
    Vec zero{};
    product_by_4(Scale{next, layers[l - 1].slope, chunk}, {&zero, 0, 0}, {layer.weight, 1, layer.inputs}, layer.inputs,
                 {delta, 1, chunk}, (points + 3) / 4 * 4, layer.outputs);
    std::swap(delta, next);
    if (k.learned) shape(l - 1, points);
  }

  // Gradients of raw alpha and raw c from PLU's output: x - edge = (h - edge) / alpha, and |x| > c iff |h| > c. There
  // delta is alpha times the gradient in h.
  void shape(int64_t l, int64_t points) {
    Vec alpha_grad{}, c_grad{};
    for (int64_t u = 0; u < layers[l].outputs; ++u) {
      const Vec *h = layers[l].output + u * chunk;
      for (int64_t p = 0; p < points; ++p) {
        Vec edge = h[p] > 0.0f ? c[l] : -c[l], g = delta[u * chunk + p] / alpha[l];
        Mask outside = absolute(h[p]) > c[l];
        alpha_grad += outside ? g * ((h[p] - edge) / alpha[l]) : Vec{};
        c_grad += outside ? (h[p] > 0.0f ? g : -g) * (1.0f - alpha[l]) : Vec{};
      }
    }
    const Vec raw_alpha = raw[l], raw_c = raw[k.depth - 1 + l];
    raw_grad[l] += absolute(raw_alpha) > k.limit ? Vec{} : alpha_grad * (alpha[l] * (1.0f - alpha[l]));
    raw_grad[k.depth - 1 + l] += absolute(raw_c) > k.limit ? Vec{} : c_grad * c[l];
  }

  // decay pulls only weights to 0, not biases or the shape of PLU; a member that has ended does not change
  void adam(int64_t t) {
    const Mask over = ended();
    const Vec own = over ? Vec{} : lr, rate = own * k.rate[t], kept = 1.0f - own * decay * k.schedule[t];
    for (const Layer& layer : layers)
      for (Vec* w = layer.weight; w < layer.bias; ++w) *w *= kept;
    for (int64_t i = 0; i < parameters; ++i) {
      mean[i] = fused(grad[i] - mean[i], splat(0.1f), mean[i]);
      square[i] = fused(grad[i] * grad[i], splat(0.001f), square[i] * 0.999f);
      Vec step = mean[i] / fused(root(square[i]), splat(k.root[t]), splat(1e-8f)) * rate;
      theta[i] -= over ? Vec{} : step;  // infinite gradients make NaN of a rate of 0
    }
  }

  void average(float share) {
    for (int64_t i = 0; i < parameters; ++i) running[i] = fused(theta[i] - running[i], splat(share), running[i]);
  }

  Mask ended() const { return waited >= static_cast<int32_t>(k.patience); }

  bool alive() const {
    if (!k.tests.count) return true;
    const Mask over = ended();
    for (int lane = 0; lane < LANES; ++lane)
      if (!over[lane]) return true;
    return false;
  }

  // Validate the running mean, or the parameters if there is none.
  void validate(int64_t step) {
    if (k.share) std::swap_ranges(theta, theta + parameters, running);
    if (k.learned) constrain();
    Vec sum{};
    for (int64_t p = 0; p < k.tests.count; p += chunk) {
      int64_t points = k.tests.count - p < chunk ? k.tests.count - p : chunk;
      fetch(k.tests, 0, p, points, nullptr);
      sum += score(points, 0.0f);
    }
    const Vec loss = sum / static_cast<float>(k.tests.count);
    store(k.looks + (step / k.every - 1) * k.members + member, ended() ? splat(NAN) : loss);
    const Mask over = ended(), better = (loss < best_loss) & ~over, progress = (loss < mark - k.tolerance) & ~over;
    for (int64_t i = 0; i < parameters; ++i) {
      float* to = k.best + i * k.members + member;
      store(to, better ? theta[i] : load(to));
    }
    for (int lane = 0; lane < LANES; ++lane)
      if (better[lane]) k.best_step[member + lane] = step;
    best_loss = better ? loss : best_loss;
    mark = progress ? loss : mark;
    waited = progress ? Mask{} : (over ? waited : waited + 1);
    if (k.share) std::swap_ranges(theta, theta + parameters, running);
  }
};

}  // namespace

extern "C" {

// Train the blocks of all tasks, which are shared by the threads that pass the same counter; it starts at 0. Return 0
// or NO_MEMORY. After NO_MEMORY the other threads end as well, and only some of the blocks have taken their steps.
int64_t plunit_train(const Task* tasks, int64_t count, int64_t* next) {
  const int64_t result = guarded([=] {
    const Task *task = tasks, *end = tasks + count;
    int64_t before = 0;  // members of the tasks before this one
    for (int64_t i; i = __atomic_fetch_add(next, LANES, __ATOMIC_RELAXED), task < end;) {
      while (task < end && i - before >= task->members) before += task++->members;
      if (task < end) Block(*task, i - before).train();
    }
    return 0;
  });
  if (result < 0) __atomic_store_n(next, INT64_MAX / 2, __ATOMIC_RELAXED);
  return result;
}

// Write the outputs of all members at the points of tests, [outputs, points, members]. Return 0 or NO_MEMORY.
int64_t plunit_values(const Task* task, float* to) {
  return guarded([=] {
    Block block(*task, 0);
    for (int64_t member = 0; member < task->members; member += LANES) block.evaluate(member, to);
    return 0;
  });
}

// The best level of this processor; see level.h.
int32_t plunit_level() { return level(); }

// Whether a * b + c is rounded once.
int32_t plunit_fused() { return FUSED; }

// The i-th name of a table, null after its end.
const char* plunit_activation(int64_t i) { return i < int64_t(ACTIVATION_NAMES.size()) ? ACTIVATION_NAMES[i] : nullptr; }
const char* plunit_loss(int64_t i) { return i < int64_t(std::size(LOSSES)) ? LOSSES[i].name : nullptr; }
}
