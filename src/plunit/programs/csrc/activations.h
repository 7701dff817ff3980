// Activations: value h = a(x) and slope d = a'(x); the slope at a kink is PyTorch's, and PLU's is that of the inner
// piece. Each is one struct for all types of numbers: Vec in training (train.cpp), double in the finish (squares.h),
// Wide in outputs (outputs.h). To add one, write a struct and a line in ACTIVATIONS here, and a line in
// plunit.ensemble.nonlinearities.ACTIVATIONS.
#pragma once
#include <array>
#include <cstring>
#include <tuple>

#include "wide.h"

struct Identity {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    h = x;
    d = number<Number>(1);
  }
};

struct Tanh {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    h = hyperbolic_tangent(x);
    d = number<Number>(1) - h * h;
  }
};

struct Relu {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const Number zero = number<Number>(0);
    const auto off = x <= zero;
    h = off ? zero : x;
    d = off ? zero : number<Number>(1);
  }
};

// PLU(x) = m + alpha (x - m) with m = clip(x, -c, c); for alpha = 0 it is m, because 0 * inf is NaN
struct Plu {
  template <class Number>
  static void apply(Number x, Number alpha, Number c, Number& h, Number& d) {
    const Number zero = number<Number>(0), low = -c;
    Number m = x < c ? x : c;
    m = m > low ? m : low;
    m = x == x ? m : x;
    const Number reach = alpha != zero ? x - m : zero;
    h = line(alpha, reach, m);
    d = x == m ? number<Number>(1) : alpha;
  }

 private:
  // in double, rounded as in NumPy
  template <class Number>
  static Number line(Number slope, Number x, Number start) {
    return slope * x + start;
  }
  static Vec line(Vec slope, Vec x, Vec start) { return fused(slope, x, start); }
};

struct LeakyRelu {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const auto on = x > number<Number>(0);
    const Number slope = number<Number>(0.01);
    h = on ? x : x * slope;
    d = on ? number<Number>(1) : slope;
  }
};

struct Hardtanh {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const Number one = number<Number>(1);
    const auto above = x >= one, below = x <= -one;
    h = above ? one : (below ? -one : x);
    d = (above | below) ? number<Number>(0) : one;
  }
};

struct Gelu {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const Number e = Exponential((x * x) * number<Number>(-0.5)).value(), phi = normal_distribution(x, e);
    h = x * phi;
    d = phi + (x * e) * number<Number>(0.39894228040143267794);
  }
};

struct Silu {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const Number one = number<Number>(1), s = sigmoid(x);
    h = x * s;
    d = s * (x * (one - s) + one);
  }
};

struct Elu {
  template <class Number>
  static void apply(Number x, Number, Number, Number& h, Number& d) {
    const Exponential e(-absolute(x));
    const auto on = x > number<Number>(0);
    h = on ? x : e.minus_one();
    d = on ? number<Number>(1) : e.value();
  }
};

// A line of the table. Only straight activations, which are piecewise linear, exist for Wide.
template <class Struct, bool STRAIGHT>
struct Activation {
  using Function = Struct;
  static constexpr bool straight = STRAIGHT;
  const char* name;
};
template <class Function>
using Smooth = Activation<Function, false>;
template <class Function>
using Straight = Activation<Function, true>;

static constexpr std::tuple ACTIVATIONS{
    Smooth<Tanh>{"tanh"},
    Straight<Relu>{"relu"},
    Straight<Plu>{"plu"},
    Straight<Plu>{"plu_learned"},
    Straight<LeakyRelu>{"leaky_relu"},
    Smooth<Gelu>{"gelu"},
    Smooth<Silu>{"silu"},
    Smooth<Elu>{"elu"},
    Straight<Identity>{"identity"},
    Straight<Hardtanh>{"hardtanh"},
};

static constexpr std::array ACTIVATION_NAMES =
    std::apply([](auto... activation) { return std::array{activation.name...}; }, ACTIVATIONS);

// Return the pointer that `pick` makes from the activation of this name; null if there is none.
template <class Pointer, class Pick>
static Pointer pick_activation(const char* name, Pick pick) {
  Pointer found = nullptr;
  const auto look = [&](auto activation) {
    if (!std::strcmp(activation.name, name)) found = pick(activation);
  };
  std::apply([&](auto... activation) { (look(activation), ...); }, ACTIVATIONS);
  return found;
}
