// Activations of a chain on samples of one feature, with slopes s > 0: value, log-slope and gradients.
// With a = |u| (or -u for LeakyReLU) and r the fraction of the bend passed, s = 1 - (1 - alpha) r, and the value is
// a - (1 - alpha) R with R the integral of r. plunit.densities.density_network has the same formulas in NumPy.
#pragma once
#include "matrices.h"

// What the parameters of one unit imply.
struct Shape {
  float alpha, c, w;  // the outer slope, the kink, the half-width of the bend
  float radius;       // without a bend: the density at the kink is estimated from samples this near to it
  float log_alpha;
};

// The gradients of a unit, as 16 partial sums each: in alpha, c and w, and in the bias before it.
struct Sums {
  float *alpha, *c, *w, *bias;
};

static inline Vec limited(Vec x, float low, float high) {
  Vec up = x < low ? splat(low) : x;
  return up > high ? splat(high) : up;
}

static inline Vec positive_part(Vec x) { return x > 0.0f ? x : Vec{}; }

// r, R, the slope, and t = -(d log s / d a).
struct Bent {
  static constexpr bool BOTH = true;
  static void at(Vec a, const Shape& k, Vec& r, Vec& integral, Vec& inverse, Vec& t) {
    const float b = 1.0f - k.alpha, scale = 0.5f / k.w;
    const Vec place = fused(a, splat(scale), splat((k.w - k.c) * scale));
    r = limited(place, 0.0f, 1.0f);
    integral = fused(r * r, splat(k.w), positive_part(a - (k.c + k.w)));
    inverse = 1.0f / fused(r, splat(-b), splat(1.0f));
    t = place == r ? inverse * (b * scale) : Vec{};
  }
};

template <bool TWO_SIDES>
struct Kinked {
  static constexpr bool BOTH = TWO_SIDES;
  static void at(Vec a, const Shape& k, Vec& r, Vec& integral, Vec& inverse, Vec& t) {
    const Vec beyond = a - k.c;
    r = beyond > 0.0f ? splat(1.0f) : Vec{};
    integral = positive_part(beyond);
    inverse = beyond > 0.0f ? splat(1.0f / k.alpha) : splat(1.0f);
    const float density = k.radius > 0.0f ? -k.log_alpha * 0.5f / k.radius : 0.0f;
    t = absolute(beyond) < k.radius ? splat(density) : Vec{};
  }
};

template <class Unit>
static inline Mask side(Vec u) {
  return Unit::BOTH ? (Mask)u & INT32_MIN : Mask{} + INT32_MIN;
}

static inline Vec signed_by(Vec x, Mask sign) { return (Vec)((Mask)x ^ sign); }

// y = activation(u); logs, if given, gains the log-slopes.
template <class Unit>
static void unit_forward(const Shape& shape, const float* u, float* y, float* logs, int64_t samples) {
  const Shape k = shape;  // a copy, which stores cannot change
  for (int64_t s = 0; s < samples; s += LANES) {
    const Vec x = load(u + s);
    const Mask sign = side<Unit>(x);
    Vec r, integral, inverse, t;
    Unit::at(signed_by(x, sign), k, r, integral, inverse, t);
    store(y + s, x - signed_by(integral * (1.0f - k.alpha), sign));
    if (logs) store(logs + s, load(logs + s) - logarithm(inverse));
  }
}

// g: from the gradient in the value to that in u. weight holds the gradient in the log-slope.
template <class Unit>
static void unit_backward(const Shape& shape, const float* u, const float* weight, float* g, const Sums& sums,
                          int64_t samples) {
  const Shape k = shape;
  const float b = 1.0f - k.alpha;
  Vec alpha[PARTS] = {}, c[PARTS] = {}, w[PARTS] = {}, bias[PARTS] = {};
  for (int64_t s = 0; s < samples; s += SIXTEEN)
    for (int p = 0; p < PARTS; ++p) {
      const int64_t place = s + p * LANES;
      const Vec x = load(u + place), in_log = load(weight + place);
      const Mask sign = side<Unit>(x);
      const Vec in_value = signed_by(load(g + place), sign);
      Vec r, integral, inverse, t;
      Unit::at(signed_by(x, sign), k, r, integral, inverse, t);
      const Vec bend = in_log * t, moved = fused(in_value * r, splat(b), bend);
      alpha[p] = fused(in_value, integral, fused(in_log * r, inverse, alpha[p]));
      c[p] += moved;
      w[p] = fused(r, moved + bend, w[p] - moved);  // with m = in_value r b: m (r - 1) + bend (2 r - 1)
      const Vec in_u = signed_by(in_value - moved, sign);  // the slope is 1 - b r
      bias[p] += in_u;
      store(g + place, in_u);
    }
  add_to(sums.alpha, alpha), add_to(sums.c, c), add_to(sums.w, w), add_to(sums.bias, bias);
}

struct Kind {
  void (*forward)(const Shape&, const float*, float*, float*, int64_t);
  void (*backward)(const Shape&, const float*, const float*, float*, const Sums&, int64_t);
};

template <class Unit>
constexpr Kind kind() {
  return {unit_forward<Unit>, unit_backward<Unit>};
}
