// Losses l(z, y) of the outputs z of one point: the sum of w l over points, and delta = scale w dl/dz.
// To add one, write a function and a line in LOSSES here, and a line in plunit.ensemble.nonlinearities.LOSSES.
#pragma once
#include "vector.h"

// One chunk of points: z, y and delta are [units, stride], w is [stride]; the first `count` points are real.
struct Scored {
  int64_t units, stride, count;
  const Vec *z, *y, *w;
  Vec* delta;
  float scale;
};

// the mean over units of (z - y)^2
static Vec square(const Scored& s) {
  Vec sum{};
  const float factor = 2.0f * s.scale / static_cast<float>(s.units);
  for (int64_t u = 0; u < s.units; ++u)
    for (int64_t p = 0; p < s.count; ++p) {
      Vec r = s.z[u * s.stride + p] - s.y[u * s.stride + p];
      sum = fused(r * r, s.w[p], sum);
      s.delta[u * s.stride + p] = r * (s.w[p] * factor);
    }
  return sum / static_cast<float>(s.units);
}

// the mean over units of log(1 + exp(z)) - y z, for y in [0, 1]
static Vec logistic(const Scored& s) {
  Vec sum{};
  const float factor = s.scale / static_cast<float>(s.units);
  for (int64_t u = 0; u < s.units; ++u)
    for (int64_t p = 0; p < s.count; ++p) {
      Vec z = s.z[u * s.stride + p], y = s.y[u * s.stride + p];
      Vec e = Exponential(-absolute(z)).value();  // log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|))
      Vec loss = (z > 0.0f ? z : Vec{}) + logarithm(e + 1.0f) - y * z;
      sum = fused(loss, s.w[p], sum);
      s.delta[u * s.stride + p] = ((z < 0.0f ? e : splat(1.0f)) / (e + 1.0f) - y) * (s.w[p] * factor);
    }
  return sum / static_cast<float>(s.units);
}

// log(sum_u exp(z_u)) - sum_u y_u z_u, for y >= 0 with sum 1
static Vec softmax(const Scored& s) {
  Vec sum{};
  for (int64_t p = 0; p < s.count; ++p) {
    Vec top = s.z[p], total{}, chosen{};
    for (int64_t u = 1; u < s.units; ++u) top = s.z[u * s.stride + p] > top ? s.z[u * s.stride + p] : top;
    for (int64_t u = 0; u < s.units; ++u) {
      Vec z = s.z[u * s.stride + p] - top, e = Exponential(z).value();
      total += e;
      chosen = fused(s.y[u * s.stride + p], z, chosen);
      s.delta[u * s.stride + p] = e;
    }
    sum = fused(logarithm(total) - chosen, s.w[p], sum);
    for (int64_t u = 0; u < s.units; ++u) {
      Vec& delta = s.delta[u * s.stride + p];
      delta = (delta / total - s.y[u * s.stride + p]) * (s.w[p] * s.scale);
    }
  }
  return sum;
}

struct Loss {
  const char* name;
  Vec (*apply)(const Scored&);
};

static const Loss LOSSES[] = {{"square", square}, {"logistic", logistic}, {"softmax", softmax}};
