// The loops of PLU over contiguous memory: forward, and backward from the output.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

// One binary for every x86-64 processor: the loader picks the widest clone that runs.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define PLUNIT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLUNIT_CLONES
#endif

#define PLUNIT_INLINE inline __attribute__((always_inline))

namespace plunit {

// double is computed in double, all else in float
template <typename T>
using wide_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// One alpha, c and rim per channel. The rim, the least number of the tensor's own dtype above c, is the least magnitude
// of an outer output: with it |y| > c holds wherever |x| > c, in floating point too, and y alone determines the piece.
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
template <typename T, typename P>
PLUNIT_INLINE T value(T x, P alpha, P c, P rim, bits_t<P> ceiling) {
  using Bits = bits_t<P>;
  const Bits signed_bits = std::bit_cast<Bits>(static_cast<P>(x));
  const Bits identity = signed_bits & std::numeric_limits<Bits>::max(), sign = signed_bits ^ identity;
  const Bits line = std::bit_cast<Bits>(c + alpha * (std::bit_cast<P>(identity) - c));
  const Bits low = least(identity, std::bit_cast<Bits>(rim)), high = least(line, identity | ceiling);
  return static_cast<T>(std::bit_cast<P>(greatest(low, high) | sign));
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

// `_runs` loops take numbers begin, ..., end - 1 with runs of numbers per channel; `_rows` loops take whole rows of
// `n` channels each, as in channels_last.

template <typename T, typename P>
PLUNIT_CLONES void forward_runs(const T* x, T* y, int64_t begin, int64_t end, Pieces<P> p, Layout layout) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel], rim = p.rim[run.channel];
    const bits_t<P> none = 0, lifted = ceiling(alpha);
    if (lifted) {
#pragma omp simd
      for (int64_t i = run.at; i < run.stop; ++i) y[i] = value(x[i], alpha, c, rim, lifted);
    } else {
#pragma omp simd
      for (int64_t i = run.at; i < run.stop; ++i) y[i] = value(x[i], alpha, c, rim, none);
    }
  }
}

template <typename T, typename P>
PLUNIT_CLONES void forward_rows(const T* x, T* y, int64_t rows, int64_t n, Pieces<P> p) {
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) y[j] = value(x[j], p.alpha[j], p.c[j], p.rim[j], ceiling(p.alpha[j]));
  }
}

template <typename T, typename P>
PLUNIT_CLONES void backward_runs(const T* grad, const T* y, T* dx, int64_t begin, int64_t end, Pieces<P> p,
                                 Layout layout) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel];
#pragma omp simd
    for (int64_t i = run.at; i < run.stop; ++i) dx[i] = static_cast<T>(pulled_back<P>(grad[i], y[i], alpha, c));
  }
}

template <typename T, typename P>
PLUNIT_CLONES void backward_rows(const T* grad, const T* y, T* dx, int64_t rows, int64_t n, Pieces<P> p) {
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, dx += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>(pulled_back<P>(grad[j], y[j], p.alpha[j], p.c[j]));
  }
}

// The learned loops add to sums[channel] the excess sums, and to sums[channels + channel] the outer ones.

template <typename T, typename P>
PLUNIT_CLONES void learned_runs(const T* grad, const T* y, T* dx, int64_t begin, int64_t end, Pieces<P> p,
                                Layout layout, double* sums) {
  for (Runs run(begin, end, layout); run.at < end; run.next()) {
    const P alpha = p.alpha[run.channel], c = p.c[run.channel];
    for (int64_t block = run.at; block < run.stop; block += kBlock) {
      const int64_t stop = std::min(block + kBlock, run.stop);
      P excess = 0, outer = 0;
#pragma omp simd reduction(+ : excess, outer)
      for (int64_t i = block; i < stop; ++i) {
        const P g = static_cast<P>(grad[i]), out = static_cast<P>(y[i]);
        dx[i] = static_cast<T>(pulled_back(g, out, alpha, c));
        add(g, out, c, excess, outer);
      }
      sums[run.channel] += excess;
      sums[layout.channels + run.channel] += outer;
    }
  }
}

template <typename T, typename P>
PLUNIT_CLONES void learned_rows(const T* grad, const T* y, T* dx, int64_t rows, int64_t n, Pieces<P> p, double* sums) {
  const int64_t block = std::max<int64_t>(1, kBlock / n);
  std::vector<P> excess(n), outer(n);
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, dx += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const P g = static_cast<P>(grad[j]), out = static_cast<P>(y[j]);
      dx[j] = static_cast<T>(pulled_back(g, out, p.alpha[j], p.c[j]));
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

// Channels last: work on whole rows.
bool in_rows(Layout layout) { return layout.inner == 1 && layout.channels > 1; }

// Share out the rows, or the numbers, among the threads.
template <typename Rows, typename Numbers>
void in_parallel(Layout layout, const Rows& rows, const Numbers& numbers) {
  if (in_rows(layout)) {
    at::parallel_for(0, layout.outer, std::max<int64_t>(1, kGrain / layout.channels), rows);
  } else {
    at::parallel_for(0, layout.outer * layout.channels * layout.inner, kGrain, numbers);
  }
}

}  // namespace

template <typename T>
void forward(const T* x, T* y, Pieces<wide_t<T>> p, Layout layout) {
  const int64_t n = layout.channels;
  in_parallel(
      layout, [&](int64_t begin, int64_t end) { forward_rows(x + begin * n, y + begin * n, end - begin, n, p); },
      [&](int64_t begin, int64_t end) { forward_runs(x, y, begin, end, p, layout); });
}

template <typename T>
void backward(const T* grad, const T* y, T* dx, Pieces<wide_t<T>> p, Layout layout) {
  const int64_t n = layout.channels;
  in_parallel(
      layout,
      [&](int64_t begin, int64_t end) {
        backward_rows(grad + begin * n, y + begin * n, dx + begin * n, end - begin, n, p);
      },
      [&](int64_t begin, int64_t end) { backward_runs(grad, y, dx, begin, end, p, layout); });
}

// Besides dx: the gradients of alpha and c, summed per channel.
template <typename T>
void backward_learned(const T* grad, const T* y, T* dx, double* dalpha, double* dc, Pieces<wide_t<T>> p,
                      Layout layout) {
  const int64_t n = layout.channels;
  std::vector<double> sums(at::get_num_threads() * 2 * n, 0.0);
  const auto mine = [&] { return sums.data() + at::get_thread_num() * 2 * n; };
  in_parallel(
      layout,
      [&](int64_t begin, int64_t end) {
        learned_rows(grad + begin * n, y + begin * n, dx + begin * n, end - begin, n, p, mine());
      },
      [&](int64_t begin, int64_t end) { learned_runs(grad, y, dx, begin, end, p, layout, mine()); });
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
