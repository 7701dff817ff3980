// Activations on a vector of members: value h = a(x) and slope d = a'(x), kinks as PyTorch has them, PLU's inside.
// The arithmetic is +, -, *, / and comparisons only, so that every processor and every vector width gives the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));

static inline Vec splat(float x) { return Vec{} + x; }

static inline Vec load(const float* from) {
  Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(float* to, Vec v) { std::memcpy(to, &v, sizeof v); }

static inline Vec absolute(Vec x) { return (Vec)((Mask)x & 0x7fffffff); }

static inline Vec root(Vec x) {
  Vec r;
  for (int lane = 0; lane < LANES; ++lane) r[lane] = std::sqrt(x[lane]);
  return r;
}

// exp(x) = scale * (1 + rest): x = n log 2 + r with |r| <= log(2) / 2, scale = 2^n, rest = r + r^2 p(r), and p a
// Chebyshev fit of degree 4 whose error (7e-8 of rest) is below float32's rounding. For x <= 88.
struct Exponential {
  Vec scale, rest;
  explicit Exponential(Vec x) {
    const float round = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits below one
    x = x < -87.0f ? splat(-87.0f) : x;
    Vec n = (x * 1.442695041f + round) - round;
    Vec r = (x - n * 0.693359375f) - n * -2.121944401e-4f;  // log 2 in two parts, the first exact in products with n
    Vec p = splat(1.392625083e-3f);
    p = p * r + 8.363232884e-3f;
    p = p * r + 4.166655421e-2f;
    p = p * r + 1.666657667e-1f;
    p = p * r + 0.5f;
    rest = r + (r * r) * p;
    scale = (Vec)((__builtin_convertvector(n, Mask) + 127) << 23);
  }
  Vec value() const { return scale + scale * rest; }
  Vec minus_one() const { return scale * rest + (scale - 1.0f); }
};

// 1 / (1 + exp(-x)), through exp(-|x|), which cannot overflow
static inline Vec sigmoid(Vec x) {
  Vec e = Exponential(-absolute(x)).value();
  return (x < 0.0f ? e : splat(1.0f)) / (e + 1.0f);
}

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

// PLU(x) = edge + alpha (x - edge) where |x| > c, else x: plunit.functional.formula, with the same rounding
struct Plu {
  static void apply(Vec x, Vec alpha, Vec c, Vec& h, Vec& d) {
    Vec edge = x > 0.0f ? c : -c;
    Mask outside = absolute(x) > c;
    Vec outer = alpha == 0.0f ? edge : edge + alpha * (x - edge);
    h = outside ? outer : x;
    d = outside ? alpha : splat(1.0f);
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
