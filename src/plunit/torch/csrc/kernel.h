// The loops of PLU over contiguous memory: forward, and backward from the output. They compute in float and double;
// half precision passes through float, tile by tile.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "half.h"

#define PLUNIT_INLINE inline __attribute__((always_inline))

namespace plunit {

// double is computed in double, all else in float
template <typename T>
using wide_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// One alpha, c and rim per channel. The rim, the least number of the tensor's own dtype above c, is the least magnitude
// of an outer output: with it |y| > c wherever |x| > c, also in floating point, so that y determines the piece.
template <typename P>
struct Pieces {
  const P *alpha, *c, *rim;
};

// Memory as [outer, channels, inner]; a single piece has channels = 1 and inner = all.
struct Layout {
  int64_t outer, channels, inner;
};

namespace {

constexpr int64_t kGrain = 32768;  // elements per task, as PyTorch's own elementwise ops
constexpr int64_t kBlock = 4096;   // elements summed in float before the sum moves to double
constexpr int64_t kTile = 512;     // elements of half precision in float at a time: they stay in the fastest cache

template <typename P>
using bits_t = std::conditional_t<std::is_same_v<P, double>, int64_t, int32_t>;

// By value: through the references of std::min and std::max the loops below do not vectorise.
template <typename B>
PLUNIT_INLINE B least(B a, B b) {
  return a < b ? a : b;
}
template <typename B>
PLUNIT_INLINE B greatest(B a, B b) {
  return a < b ? b : a;
}

// A mask: all bits but the sign for alpha > 1, where |x| does not limit the outer line; 0 for alpha <= 1 (see `value`).
template <typename P>
PLUNIT_INLINE bits_t<P> ceiling(P alpha) {
  return alpha > 1 ? std::numeric_limits<bits_t<P>>::max() : 0;
}

// PLU on bit patterns. Numbers >= 0 are ordered like their bits, with NaN above all. A processor has one instruction for
// a minimum of integers; a minimum of floats has special cases. For alpha <= 1 the outer line is at most |x|; for
// alpha > 1 the ceiling removes this limit.
template <typename P>
PLUNIT_INLINE P value(P x, P alpha, P c, P rim, bits_t<P> ceiling) {
  using Bits = bits_t<P>;
  const Bits signed_bits = std::bit_cast<Bits>(x);
  const Bits identity = signed_bits & std::numeric_limits<Bits>::max(), sign = signed_bits ^ identity;
  const Bits line = std::bit_cast<Bits>(c + alpha * (std::bit_cast<P>(identity) - c));
  const Bits low = least(identity, std::bit_cast<Bits>(rim)), high = least(line, identity | ceiling);
  return std::bit_cast<P>(greatest(low, high) | sign);
}

template <typename P>
PLUNIT_INLINE P pulled_back(P grad, P y, P alpha, P c) {
  return std::abs(y) > c ? grad * alpha : grad;
}

// Adds one number to the two sums that dalpha and dc need: g sign(y) (|y| - c) and g sign(y), on the outer pieces.
template <typename P>
PLUNIT_INLINE void add(P grad, P y, P c, P& excess, P& outer) {
  const P size = std::abs(y);
  const P signed_grad = size > c ? std::copysign(P(1), y) * grad : P(0);
  excess += signed_grad * (size <= c ? P(0) : size - c);  // a NaN stays one
  outer += signed_grad;
}

// Walks numbers begin, ..., end - 1 of a [outer, channels, inner] array run by run. A run is a stretch of one channel.
// There is one division for all runs, because runs can be short.
struct Runs {
  int64_t at, stop, channel, end;
  const Layout layout;

  PLUNIT_INLINE Runs(int64_t begin, int64_t end, Layout layout)
      : at(begin),
        stop(std::min((begin / layout.inner + 1) * layout.inner, end)),
        channel(begin / layout.inner % layout.channels),
        end(end),
        layout(layout) {}

  PLUNIT_INLINE void next() {
    at = stop;
    stop = std::min(stop + layout.inner, end);
    channel = channel + 1 == layout.channels ? 0 : channel + 1;
  }
};

// `_runs` loops work on numbers begin, ..., end - 1 with runs of numbers per channel; `_rows` loops on whole rows of
// `n` channels each, as in channels_last. The pointers are to the first of these numbers, and y or dx may be an input.

template <typename P>
PLUNIT_CLONES void forward_runs(const P* x, P* y, int64_t begin, int64_t end, Pieces<P> p, Layout layout) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel], rim = p.rim[run.channel];
    const bits_t<P> none = 0, lifted = ceiling(alpha);
    if (lifted) {
#pragma omp simd
      for (int64_t i = run.at - begin; i < run.stop - begin; ++i) y[i] = value(x[i], alpha, c, rim, lifted);
    } else {
#pragma omp simd
      for (int64_t i = run.at - begin; i < run.stop - begin; ++i) y[i] = value(x[i], alpha, c, rim, none);
    }
  }
}

template <typename P>
PLUNIT_CLONES void forward_rows(const P* x, P* y, int64_t rows, int64_t n, Pieces<P> p) {
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) y[j] = value(x[j], p.alpha[j], p.c[j], p.rim[j], ceiling(p.alpha[j]));
  }
}

template <typename P>
PLUNIT_CLONES void backward_runs(const P* grad, const P* y, P* dx, int64_t begin, int64_t end, Pieces<P> p,
                                 Layout layout) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel];
#pragma omp simd
    for (int64_t i = run.at - begin; i < run.stop - begin; ++i) dx[i] = pulled_back(grad[i], y[i], alpha, c);
  }
}

template <typename P>
PLUNIT_CLONES void backward_rows(const P* grad, const P* y, P* dx, int64_t rows, int64_t n, Pieces<P> p) {
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, dx += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) dx[j] = pulled_back(grad[j], y[j], p.alpha[j], p.c[j]);
  }
}

// The learned loops add to sums[channel] the excess sums, and to sums[channels + channel] the outer ones.

template <typename P>
PLUNIT_CLONES void learned_runs(const P* grad, const P* y, P* dx, int64_t begin, int64_t end, Pieces<P> p,
                                Layout layout, double* sums) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel];
    for (int64_t block = run.at; block < run.stop; block += kBlock) {
      const int64_t stop = std::min(block + kBlock, run.stop) - begin;
      P excess = 0, outer = 0;
#pragma omp simd reduction(+ : excess, outer)
      for (int64_t i = block - begin; i < stop; ++i) {
        const P g = grad[i], out = y[i];
        dx[i] = pulled_back(g, out, alpha, c);
        add(g, out, c, excess, outer);
      }
      sums[run.channel] += excess;
      sums[layout.channels + run.channel] += outer;
    }
  }
}

template <typename P>
PLUNIT_CLONES void learned_rows(const P* grad, const P* y, P* dx, int64_t rows, int64_t n, Pieces<P> p, double* sums) {
  const int64_t block = std::max<int64_t>(1, kBlock / n);
  std::vector<P> excess(n), outer(n);
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, dx += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const P g = grad[j], out = y[j];
      dx[j] = pulled_back(g, out, p.alpha[j], p.c[j]);
      add(g, out, p.c[j], excess[j], outer[j]);
    }
    if ((row + 1) % block && row + 1 < rows) continue;
    for (int64_t j = 0; j < n; ++j) {
      sums[j] += excess[j];
      sums[n + j] += outer[j];
      excess[j] = outer[j] = 0;
    }
  }
}

// Calls work(begin, end, out, in...) with pointers to number begin * width, in the precision of the loops: half
// precision in tiles that are widened before and narrowed after. `out` may be one of the inputs.
template <typename T, typename Work, typename... Inputs>
void in_tiles(int64_t begin, int64_t end, int64_t width, const Work& work, T* out, const Inputs*... in) {
  if constexpr (std::is_same_v<T, wide_t<T>>) {
    work(begin, end, out + begin * width, (in + begin * width)...);
  } else {
    const int64_t step = std::max<int64_t>(1, kTile / width), size = (step * width + 15) / 16 * 16;
    std::vector<float> memory(sizeof...(in) * size + 16);
    // from a cache line on: vectors that straddle two lines take almost twice as long
    float* const first = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) / sizeof(float);
    for (int64_t at = begin; at < end; at += step) {
      const int64_t stop = std::min(at + step, end), n = (stop - at) * width;
      float* next = first;
      const auto widened = [&](const T* input) {
        widen(input + at * width, next, n);
        return std::exchange(next, next + size);
      };
      std::apply([&](const auto*... wide) { work(at, stop, first, wide...); }, std::tuple{widened(in)...});
      narrow(first, out + at * width, n);
    }
  }
}

// Channels last: work on whole rows.
bool in_rows(Layout layout) { return layout.inner == 1 && layout.channels > 1; }

// Shares out the rows, or the numbers, among the threads; `rows` and `numbers` are work for `in_tiles`.
template <typename Rows, typename Numbers, typename T, typename... Inputs>
void in_parallel(Layout layout, const Rows& rows, const Numbers& numbers, T* out, const Inputs*... in) {
  const int64_t n = layout.channels;
  if (in_rows(layout)) {
    at::parallel_for(0, layout.outer, std::max<int64_t>(1, kGrain / n),
                     [&](int64_t begin, int64_t end) { in_tiles(begin, end, n, rows, out, in...); });
  } else {
    at::parallel_for(0, layout.outer * n * layout.inner, kGrain,
                     [&](int64_t begin, int64_t end) { in_tiles(begin, end, 1, numbers, out, in...); });
  }
}

}  // namespace

template <typename T, typename P = wide_t<T>>
void forward(const T* x, T* y, Pieces<P> p, Layout layout) {
  in_parallel(
      layout,
      [&](int64_t begin, int64_t end, P* y, const P* x) { forward_rows(x, y, end - begin, layout.channels, p); },
      [&](int64_t begin, int64_t end, P* y, const P* x) { forward_runs(x, y, begin, end, p, layout); }, y, x);
}

template <typename T, typename P = wide_t<T>>
void backward(const T* grad, const T* y, T* dx, Pieces<P> p, Layout layout) {
  in_parallel(
      layout,
      [&](int64_t begin, int64_t end, P* dx, const P* grad, const P* y) {
        backward_rows(grad, y, dx, end - begin, layout.channels, p);
      },
      [&](int64_t begin, int64_t end, P* dx, const P* grad, const P* y) {
        backward_runs(grad, y, dx, begin, end, p, layout);
      },
      dx, grad, y);
}

// Besides dx: the gradients of alpha and c, summed per channel.
template <typename T, typename P = wide_t<T>>
void backward_learned(const T* grad, const T* y, T* dx, double* dalpha, double* dc, Pieces<P> p, Layout layout) {
  const int64_t n = layout.channels;
  std::vector<double> sums(at::get_num_threads() * 2 * n, 0.0);
  const auto mine = [&] { return sums.data() + at::get_thread_num() * 2 * n; };
  in_parallel(
      layout,
      [&](int64_t begin, int64_t end, P* dx, const P* grad, const P* y) {
        learned_rows(grad, y, dx, end - begin, n, p, mine());
      },
      [&](int64_t begin, int64_t end, P* dx, const P* grad, const P* y) {
        learned_runs(grad, y, dx, begin, end, p, layout, mine());
      },
      dx, grad, y);
  for (int64_t k = 0; k < n; ++k) {
    double excess = 0, outer = 0;
    for (size_t thread = 0; thread < sums.size(); thread += 2 * n) {
      excess += sums[thread + k];
      outer += sums[thread + n + k];
    }
    dalpha[k] = excess / p.alpha[k];  // x - m = (y - m) / alpha
    dc[k] = (1 - static_cast<double>(p.alpha[k])) * outer;
  }
}

}  // namespace plunit
