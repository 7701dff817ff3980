// A vector of members, one on each lane, and the functions of it that training needs.
// The arithmetic is +, -, *, /, sqrt, fused multiply-add and comparisons only, and lanes never meet: every processor
// with fused multiply-add and every vector width gives the same bits. Without it, a * b + c is rounded twice.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || defined(PLUNIT_FUSED)
constexpr bool FUSED = true;
#else
constexpr bool FUSED = false;
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

// a * b + c, rounded once. A loop over lanes would work, but compilers do not always keep it in registers.
static inline Vec fused(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(PLUNIT_FUSED)  // for tests: the bits of fused multiply-add on vectors of another width
  Vec r;
  for (int lane = 0; lane < LANES; ++lane) r[lane] = std::fma(a[lane], b[lane], c[lane]);
  return r;
#else
  return a * b + c;
#endif
}

static inline Vec absolute(Vec x) { return (Vec)((Mask)x & 0x7fffffff); }
static inline double absolute(double x) { return std::fabs(x); }

static inline Vec root(Vec x) {
  Vec r;
  for (int lane = 0; lane < LANES; ++lane) r[lane] = std::sqrt(x[lane]);
  return r;
}

// A constant on every lane, for functions of any type of number: Vec here, double and Wide in wide.h.
template <class Number>
static inline Number number(double value);
template <>
inline Vec number<Vec>(double value) {
  return splat(static_cast<float>(value));
}

// exp(x) = scale * (1 + rest): x = n log 2 + r with |r| <= log(2) / 2, scale = 2^n, rest = r + r^2 p(r).
template <class Number>
struct Exponential;
template <class Number>
Exponential(Number) -> Exponential<Number>;

// p is a Chebyshev fit of degree 4 whose error (7e-8 of rest) is below float32's rounding. For x <= 88.
template <>
struct Exponential<Vec> {
  Vec scale, rest;
  explicit Exponential(Vec x) {
    const float round = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits below one
    x = x < -87.0f ? splat(-87.0f) : x;
    Vec n = (x * 1.442695041f + round) - round;
    Vec r = (x - n * 0.693359375f) - n * -2.121944401e-4f;  // log 2 in two parts, the first exact in products with n
    Vec p = splat(1.392625083e-3f);
    p = fused(p, r, splat(8.363232884e-3f));
    p = fused(p, r, splat(4.166655421e-2f));
    p = fused(p, r, splat(1.666657667e-1f));
    p = fused(p, r, splat(0.5f));
    rest = r + (r * r) * p;
    scale = (Vec)((__builtin_convertvector(n, Mask) + 127) << 23);
  }
  Vec value() const { return scale + scale * rest; }
  Vec minus_one() const { return scale * rest + (scale - 1.0f); }
};

// 1 / (1 + exp(-x)), through exp(-|x|), which cannot overflow
template <class Number>
static inline Number sigmoid(Number x) {
  const Number zero = number<Number>(0), one = number<Number>(1), e = Exponential(-absolute(x)).value();
  return (x < zero ? e : one) / (e + one);
}

// tanh(x), through exp(-2 |x|) - 1
static inline Vec hyperbolic_tangent(Vec x) {
  const Vec m = Exponential(absolute(x) * -2.0f).minus_one(), size = -m / (m + 2.0f);
  return x < 0.0f ? -size : size;
}

// Phi(x) of the normal distribution, given exp(-x^2 / 2): erf from Abramowitz and Stegun 7.1.26 (error 1.5e-7)
static inline Vec normal_distribution(Vec x, Vec e) {
  Vec t = 1.0f / (absolute(x) * (0.3275911f * 0.7071067812f) + 1.0f);
  Vec p = splat(1.061405429f);
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  Vec tail = ((p * t) * e) * 0.5f;
  return x < 0.0f ? tail : 1.0f - tail;
}

// log(x) for normal x > 0: x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s) with s = (m - 1) / (m + 1).
// The series of artanh to s^9: its next term is below 4e-9 of s.
static inline Vec logarithm(Vec x) {
  Mask bits = (Mask)x - 0x3f3504f3;  // the bits of sqrt(1/2)
  Vec n = __builtin_convertvector(bits >> 23, Vec);
  Vec m = (Vec)((bits & 0x007fffff) + 0x3f3504f3);
  Vec s = (m - 1.0f) / (m + 1.0f), q = s * s;
  Vec p = fused(q, splat(1.0f / 9), splat(1.0f / 7));
  p = fused(p, q, splat(1.0f / 5));
  p = fused(p, q, splat(1.0f / 3));
  Vec log_m = 2.0f * fused(p * q, s, s);
  return fused(n, splat(0.693359375f), fused(n, splat(-2.121944401e-4f), log_m));
}
