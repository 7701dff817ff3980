// Activations on a vector of members: value h = a(x) and slope d = a'(x), kinks as PyTorch has them, PLU's inside.
// A new one is a struct and a line in ACTIVATIONS here, and a line in plunit.ensemble.nonlinearities.ACTIVATIONS.
#pragma once
#include "product.h"

struct Identity {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    h = x;
    d = splat(1.0f);
  }
};

struct Tanh {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Vec m = Exponential(absolute(x) * -2.0f).minus_one();
    h = -m / (m + 2.0f);
    h = x < 0.0f ? -h : h;
    d = 1.0f - h * h;
  }
};

struct Relu {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Mask off = x <= 0.0f;
    h = off ? Vec{} : x;
    d = off ? Vec{} : splat(1.0f);
  }
};

// PLU(x) = m + alpha (x - m) with m = clip(x, -c, c); a flat piece stays at the edge, where 0 * inf is NaN
struct Plu {
  static void apply(Vec x, Vec alpha, Vec c, Vec& h, Vec& d) {
    Vec low = -c, m = x < c ? x : c;
    m = m > low ? m : low;
    m = x == x ? m : x;
    Vec reach = (Vec)((Mask)(x - m) & (alpha != 0.0f));
    h = fused(alpha, reach, m);
    d = x == m ? splat(1.0f) : alpha;
  }
};

struct LeakyRelu {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Mask on = x > 0.0f;
    h = on ? x : x * 0.01f;
    d = on ? splat(1.0f) : splat(0.01f);
  }
};

struct Hardtanh {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Mask above = x >= 1.0f, below = x <= -1.0f;
    h = above ? splat(1.0f) : (below ? splat(-1.0f) : x);
    d = (above | below) ? Vec{} : splat(1.0f);
  }
};

// x Phi(x), with erf from Abramowitz and Stegun 7.1.26 (error 1.5e-7)
struct Gelu {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Vec e = Exponential((x * x) * -0.5f).value();
    Vec t = 1.0f / (absolute(x) * (0.3275911f * 0.7071067812f) + 1.0f);
    Vec p = splat(1.061405429f);
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    Vec tail = ((p * t) * e) * 0.5f;
    Vec phi = x < 0.0f ? tail : 1.0f - tail;
    h = x * phi;
    d = phi + (x * e) * 0.3989422804f;
  }
};

struct Silu {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Vec s = sigmoid(x);
    h = x * s;
    d = s * (x * (1.0f - s) + 1.0f);
  }
};

struct Elu {
  static void apply(Vec x, Vec, Vec, Vec& h, Vec& d) {
    Exponential e(-absolute(x));
    Mask on = x > 0.0f;
    h = on ? x : e.minus_one();
    d = on ? splat(1.0f) : e.value();
  }
};

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
static void activated(const Layer& layer, int64_t points, Vec alpha, Vec c) {
  product_by_4(Apply<Function>{layer.output, layer.slope, alpha, c, layer.stride}, {layer.bias, 1, 0},
               {layer.weight, layer.inputs, 1}, layer.outputs, {layer.input, 1, layer.stride}, points, layer.inputs);
}

struct Activation {
  const char* name;
  void (*forward)(const Layer& layer, int64_t points, Vec alpha, Vec c);
};

static const Activation ACTIVATIONS[] = {
    {"tanh", activated<Tanh>},
    {"relu", activated<Relu>},
    {"plu", activated<Plu>},
    {"plu_learned", activated<Plu>},
    {"leaky_relu", activated<LeakyRelu>},
    {"gelu", activated<Gelu>},
    {"silu", activated<Silu>},
    {"elu", activated<Elu>},
    {"identity", activated<Identity>},
    {"hardtanh", activated<Hardtanh>},
};
