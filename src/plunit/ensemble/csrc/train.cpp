// Steps of Adam on the mean square error of many small networks, a vector of members at a time.
//
// A block of LANES members keeps its parameters, Adam's moments and all activations in the first-level cache for all
// the steps of a call; blocks never meet, so a member's numbers depend neither on its neighbours nor on the number of
// threads. Arrays are [rows, members] with members contiguous; a layer's rows are its weights [out, in], then its
// biases; after the last layer come, if learned, the raw alpha and raw c of each activation.
#include <memory>
#include <utility>
#include <vector>

#include "activations.h"

struct Task {
  int64_t members;  // the row stride of all arrays, a multiple of LANES
  int64_t batch, steps, first, stride;
  int64_t data_members, data_steps;  // 1 where x and y have no such axis
  int64_t depth;
  const int64_t* widths;
  int64_t activation, learned;
  float limit;               // bound on the raw alpha and c
  const float *rate, *root;  // lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t) of each step
  float *theta, *mean, *square;
  const float *alpha, *c;  // [depth - 1, members]
  const float *x, *y;      // [data_steps, width, batch, data_members]
  float* history;          // the loss before step t, for t a multiple of stride
};

namespace {

constexpr int TILE = 4;  // points worked on together: independent sums hide the latency of an addition

struct Layer {
  int64_t inputs, outputs;
  Vec *weight, *bias, *weight_grad, *bias_grad;
  Vec *input, *output, *slope;  // [units, points]
};

template <class Activation>
class Block {
 public:
  Block(const Task& task, int64_t member) : k(task), member(member), points((k.batch + TILE - 1) / TILE * TILE) {
    int64_t rows = 2 * k.learned * (k.depth - 1), units = k.widths[0], widest = k.widths[0];
    for (int64_t l = 0; l < k.depth; ++l) {
      rows += k.widths[l + 1] * (k.widths[l] + 1);
      units += k.widths[l + 1];
      widest = widest < k.widths[l + 1] ? k.widths[l + 1] : widest;
    }
    parameters = rows;
    theta = room(rows), mean = room(rows), square = room(rows), grad = room(rows);
    alpha = room(k.depth), c = room(k.depth);
    target = room(k.widths[k.depth] * points);
    delta = room(widest * points), next = room(widest * points), pulled = room(widest * points);
    Vec *weight = theta, *weight_grad = grad, *values = room(units * points);
    for (int64_t l = 0; l < k.depth; ++l) {
      int64_t in = k.widths[l], out = k.widths[l + 1];
      layers.push_back({in, out, weight, weight + in * out, weight_grad, weight_grad + in * out, values,
                        values + in * points, room(out * points)});
      weight += (in + 1) * out, weight_grad += (in + 1) * out, values += in * points;
    }
    raw = weight, raw_grad = weight_grad;
  }

  void train() {
    read(k.theta, theta, parameters), read(k.mean, mean, parameters), read(k.square, square, parameters);
    read(k.alpha, alpha, k.depth - 1), read(k.c, c, k.depth - 1);
    for (int64_t t = 0; t < k.steps; ++t) {
      if (t == 0 || k.data_steps > 1) fetch(t);
      if (k.learned) constrain();
      for (int64_t l = 0; l < k.depth; ++l) forward(l);
      Vec loss = residual();
      if ((k.first + t) % k.stride == 0) store(k.history + (k.first + t) / k.stride * k.members + member, loss);
      for (int64_t l = k.depth - 1; l >= 0; --l) backward(l);
      adam(k.rate[t], k.root[t]);
    }
    write(theta, k.theta), write(mean, k.mean), write(square, k.square);
  }

 private:
  const Task& k;
  const int64_t member, points;
  int64_t parameters;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<Layer> layers;
  Vec *theta, *mean, *square, *grad, *alpha, *c, *raw, *raw_grad, *target, *delta, *next, *pulled;

  Vec* room(int64_t vectors) {
    memory.emplace_back(new char[(vectors + 1) * sizeof(Vec)]());
    auto address = reinterpret_cast<uintptr_t>(memory.back().get());
    return reinterpret_cast<Vec*>((address + sizeof(Vec) - 1) / sizeof(Vec) * sizeof(Vec));
  }

  void read(const float* from, Vec* to, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) to[i] = load(from + i * k.members + member);
  }

  void write(const Vec* from, float* to) {
    for (int64_t i = 0; i < parameters; ++i) store(to + i * k.members + member, from[i]);
  }

  void fetch(int64_t step) {
    copy(k.x, k.widths[0], step, layers[0].input);
    copy(k.y, k.widths[k.depth], step, target);
  }

  void copy(const float* from, int64_t units, int64_t step, Vec* to) {
    if (k.data_steps > 1) from += step * units * k.batch * k.data_members;
    for (int64_t u = 0; u < units; ++u)
      for (int64_t p = 0; p < k.batch; ++p) {
        const float* value = from + (u * k.batch + p) * k.data_members;
        to[u * points + p] = k.data_members > 1 ? load(value + member) : splat(*value);
      }
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

  void forward(int64_t l) {
    const Layer layer = layers[l];  // a copy, and `points` below: a store cannot change what is local
    const int64_t points = this->points;
    for (int64_t o = 0; o < layer.outputs; ++o)
      for (int64_t p = 0; p < points; p += TILE) {
        Vec z[TILE];
        for (int q = 0; q < TILE; ++q) z[q] = layer.bias[o];
        for (int64_t i = 0; i < layer.inputs; ++i) {
          Vec w = layer.weight[o * layer.inputs + i];
          for (int q = 0; q < TILE; ++q) z[q] += w * layer.input[i * points + p + q];
        }
        Vec *h = layer.output + o * points + p, *d = layer.slope + o * points + p;
        for (int q = 0; q < TILE; ++q)
          if (l + 1 < k.depth)
            Activation::apply(z[q], alpha[l], c[l], h[q], d[q]);
          else
            h[q] = z[q];
      }
  }

  // the loss; delta becomes its gradient in the network's output, 0 on the points that fill the last tile
  Vec residual() {
    const Vec* output = layers.back().output;
    const int64_t units = layers.back().outputs;
    const float count = static_cast<float>(k.batch * units);
    Vec sum[TILE] = {};
    for (int64_t u = 0; u < units; ++u)
      for (int64_t p = 0; p < points; ++p) {
        Vec r = p < k.batch ? output[u * points + p] - target[u * points + p] : Vec{};
        sum[p % TILE] += r * r;
        delta[u * points + p] = r * (2.0f / count);
      }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) / count;
  }

  void backward(int64_t l) {
    const Layer layer = layers[l];
    const int64_t points = this->points;
    for (int64_t o = 0; o < layer.outputs; ++o) {
      const Vec* d = delta + o * points;
      layer.bias_grad[o] = total([&](int64_t p) { return d[p]; });
      for (int64_t i = 0; i < layer.inputs; ++i) {
        const Vec* h = layer.input + i * points;
        layer.weight_grad[o * layer.inputs + i] = total([&](int64_t p) { return d[p] * h[p]; });
      }
    }
    if (l == 0) return;
    pull(layer, layers[l - 1].slope);
    if (k.learned) shape(l - 1);
    std::swap(delta, next);
  }

  // pulled = W^T delta, the gradient in the layer's input; next = pulled * slope, that before the activation
  void pull(const Layer layer, const Vec* slope) {
    const int64_t points = this->points;
    Vec *const delta = this->delta, *const next = this->next, *const pulled = this->pulled;
    for (int64_t i = 0; i < layer.inputs; ++i)
      for (int64_t p = 0; p < points; p += TILE) {
        Vec sum[TILE] = {};
        for (int64_t o = 0; o < layer.outputs; ++o) {
          Vec w = layer.weight[o * layer.inputs + i];
          for (int q = 0; q < TILE; ++q) sum[q] += w * delta[o * points + p + q];
        }
        for (int q = 0; q < TILE; ++q) {
          pulled[i * points + p + q] = sum[q];
          next[i * points + p + q] = sum[q] * slope[i * points + p + q];
        }
      }
  }

  // gradients of raw alpha and raw c from PLU's output: x - edge = (h - edge) / alpha, and |x| > c iff |h| > c
  void shape(int64_t l) {
    Vec alpha_grad{}, c_grad{};
    for (int64_t u = 0; u < layers[l].outputs; ++u) {
      const Vec *g = pulled + u * points, *h = layers[l].output + u * points;
      alpha_grad += total([&](int64_t p) {
        Vec edge = h[p] > 0.0f ? c[l] : -c[l];
        return absolute(h[p]) > c[l] ? g[p] * ((h[p] - edge) / alpha[l]) : Vec{};
      });
      c_grad += total([&](int64_t p) {
        Vec side = h[p] > 0.0f ? g[p] : -g[p];
        return absolute(h[p]) > c[l] ? side * (1.0f - alpha[l]) : Vec{};
      });
    }
    const Vec raw_alpha = raw[l], raw_c = raw[k.depth - 1 + l];
    raw_grad[l] = absolute(raw_alpha) > k.limit ? Vec{} : alpha_grad * (alpha[l] * (1.0f - alpha[l]));
    raw_grad[k.depth - 1 + l] = absolute(raw_c) > k.limit ? Vec{} : c_grad * c[l];
  }

  template <class Term>
  Vec total(Term term) {
    Vec sum[TILE] = {};
    for (int64_t p = 0; p < points; p += TILE)
      for (int q = 0; q < TILE; ++q) sum[q] += term(p + q);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  void adam(float rate, float root_correction) {
    for (int64_t i = 0; i < parameters; ++i) {
      mean[i] += (grad[i] - mean[i]) * 0.1f;
      square[i] = square[i] * 0.999f + (grad[i] * grad[i]) * 0.001f;
      theta[i] -= mean[i] / (root(square[i]) * root_correction + 1e-8f) * rate;
    }
  }
};

template <class Activation>
void train(const Task& task, int64_t first, int64_t last) {
  for (int64_t member = first; member < last; member += LANES) Block<Activation>(task, member).train();
}

// in the order of plunit.ensemble.activation.ACTIVATIONS
constexpr void (*PROGRAMS[])(const Task&, int64_t, int64_t) = {
    train<Tanh>, train<Relu>, train<Plu>,  train<Identity>, train<LeakyRelu>,
    train<Hardtanh>, train<Gelu>, train<Silu>, train<Elu>, train<Plu>,
};

}  // namespace

extern "C" void plunit_train(const Task* task, int64_t first, int64_t last) {
  PROGRAMS[task->activation](*task, first, last);
}
