#include "kernel.h"

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

// One binary for every x86-64 processor: the loader picks the widest clone that runs.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define PLUNIT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLUNIT_CLONES
#endif

#if defined(_MSC_VER)
#define PLUNIT_INLINE __forceinline
#else
#define PLUNIT_INLINE inline __attribute__((always_inline))
#endif

namespace plunit {
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

// All bits but the sign where the outer line is above the identity outside and below it inside; else none.
template <typename P>
PLUNIT_INLINE bits_t<P> ceiling(P alpha) {
  return alpha > 1 ? std::numeric_limits<bits_t<P>>::max() : 0;
}

// PLU on bit patterns: numbers >= 0 are ordered like their bits, with NaN above all, and processors have one
// instruction for each of these minima, without the cases of floating-point ones. An alpha <= 1 needs the outer line
// cut at the identity; for alpha > 1 the ceiling lifts that cut.
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

// What one number adds to the sums behind dalpha and dc: g sign(y) (|y| - c) and g sign(y) on the outer pieces.
template <typename P>
PLUNIT_INLINE void add(P grad, P y, P c, P& excess, P& outer) {
  const P size = std::abs(y);
  const P signed_grad = size > c ? std::copysign(P(1), y) * grad : P(0);
  excess += signed_grad * (size > c ? size - c : P(0));
  outer += signed_grad;
}

// `run`: n numbers in one piece. `rows`: rows of numbers, column j in piece j.

template <typename T, typename P>
PLUNIT_CLONES void forward_run(const T* x, T* y, int64_t n, P alpha, P c, P rim) {
  const bits_t<P> none = 0, lifted = ceiling(alpha);
  if (lifted) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = value(x[i], alpha, c, rim, lifted);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = value(x[i], alpha, c, rim, none);
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
PLUNIT_CLONES void backward_run(const T* grad, const T* y, T* dx, int64_t n, P alpha, P c) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = static_cast<T>(pulled_back<P>(grad[i], y[i], alpha, c));
}

template <typename T, typename P>
PLUNIT_CLONES void backward_rows(const T* grad, const T* y, T* dx, int64_t rows, int64_t n, Pieces<P> p) {
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, dx += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>(pulled_back<P>(grad[j], y[j], p.alpha[j], p.c[j]));
  }
}

template <typename T, typename P>
PLUNIT_CLONES void sums_run(const T* grad, const T* y, int64_t n, P c, P& excess, P& outer) {
  P e = 0, o = 0;
#pragma omp simd reduction(+ : e, o)
  for (int64_t i = 0; i < n; ++i) add<P>(grad[i], y[i], c, e, o);
  excess = e, outer = o;
}

template <typename T, typename P>
PLUNIT_CLONES void sums_rows(const T* grad, const T* y, int64_t rows, int64_t n, const P* c, P* excess, P* outer) {
  std::fill(excess, excess + n, P(0));
  std::fill(outer, outer + n, P(0));
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) add<P>(grad[j], y[j], c[j], excess[j], outer[j]);
  }
}

// Call run(begin, length, channel) over stretches of at most `block` numbers that share a channel.
template <typename Run>
void for_each_run(int64_t begin, int64_t end, Layout layout, int64_t block, const Run& run) {
  while (begin < end) {
    const int64_t row = begin / layout.inner;
    const int64_t stop = std::min({end, (row + 1) * layout.inner, begin + block});
    run(begin, stop - begin, row % layout.channels);
    begin = stop;
  }
}

// Channels last, or no channel axis to speak of: which loop fits the layout, and how many rows make a task.
bool in_rows(Layout layout) { return layout.inner == 1 && layout.channels > 1; }

int64_t rows_per(int64_t elements, Layout layout) { return std::max<int64_t>(1, elements / layout.channels); }

int64_t size(Layout layout) { return layout.outer * layout.channels * layout.inner; }

}  // namespace

template <typename T>
void forward(const T* x, T* y, Pieces<wide_t<T>> p, Layout layout) {
  if (in_rows(layout)) {
    at::parallel_for(0, layout.outer, rows_per(kGrain, layout), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * layout.channels;
      forward_rows(x + at, y + at, end - begin, layout.channels, p);
    });
    return;
  }
  at::parallel_for(0, size(layout), kGrain, [&](int64_t begin, int64_t end) {
    for_each_run(begin, end, layout, end - begin, [&](int64_t at, int64_t n, int64_t k) {
      forward_run(x + at, y + at, n, p.alpha[k], p.c[k], p.rim[k]);
    });
  });
}

template <typename T>
void backward(const T* grad, const T* y, T* dx, Pieces<wide_t<T>> p, Layout layout) {
  if (in_rows(layout)) {
    at::parallel_for(0, layout.outer, rows_per(kGrain, layout), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * layout.channels;
      backward_rows(grad + at, y + at, dx + at, end - begin, layout.channels, p);
    });
    return;
  }
  at::parallel_for(0, size(layout), kGrain, [&](int64_t begin, int64_t end) {
    for_each_run(begin, end, layout, end - begin, [&](int64_t at, int64_t n, int64_t k) {
      backward_run(grad + at, y + at, dx + at, n, p.alpha[k], p.c[k]);
    });
  });
}

template <typename T>
void backward_learned(const T* grad, const T* y, T* dx, double* dalpha, double* dc, Pieces<wide_t<T>> p,
                      Layout layout) {
  using P = wide_t<T>;
  const int64_t channels = layout.channels;
  // per thread: the excess sums of all channels, then the outer sums
  std::vector<double> sums(at::get_num_threads() * 2 * channels, 0.0);

  if (in_rows(layout)) {
    const int64_t block = rows_per(kBlock, layout);
    at::parallel_for(0, layout.outer, rows_per(kGrain, layout), [&](int64_t begin, int64_t end) {
      double* mine = sums.data() + at::get_thread_num() * 2 * channels;
      std::vector<P> part(2 * channels);
      for (int64_t row = begin; row < end; row += block) {
        const int64_t at = row * channels, rows = std::min(block, end - row);
        backward_rows(grad + at, y + at, dx + at, rows, channels, p);
        sums_rows(grad + at, y + at, rows, channels, p.c, part.data(), part.data() + channels);
        for (int64_t i = 0; i < 2 * channels; ++i) mine[i] += part[i];
      }
    });
  } else {
    at::parallel_for(0, size(layout), kGrain, [&](int64_t begin, int64_t end) {
      double* mine = sums.data() + at::get_thread_num() * 2 * channels;
      for_each_run(begin, end, layout, kBlock, [&](int64_t at, int64_t n, int64_t k) {
        P excess, outer;
        backward_run(grad + at, y + at, dx + at, n, p.alpha[k], p.c[k]);
        sums_run(grad + at, y + at, n, p.c[k], excess, outer);
        mine[k] += excess;
        mine[channels + k] += outer;
      });
    });
  }

  for (int64_t k = 0; k < channels; ++k) {
    double excess = 0, outer = 0;
    for (size_t thread = 0; thread < sums.size(); thread += 2 * channels) {
      excess += sums[thread + k];
      outer += sums[thread + channels + k];
    }
    dalpha[k] = excess / p.alpha[k];  // x - m = (y - m) / alpha
    dc[k] = (1 - static_cast<double>(p.alpha[k])) * outer;
  }
}

#define PLUNIT_INSTANTIATE(T)                                                   \
  template void forward<T>(const T*, T*, Pieces<wide_t<T>>, Layout);            \
  template void backward<T>(const T*, const T*, T*, Pieces<wide_t<T>>, Layout); \
  template void backward_learned<T>(const T*, const T*, T*, double*, double*, Pieces<wide_t<T>>, Layout);

PLUNIT_INSTANTIATE(float)
PLUNIT_INSTANTIATE(double)
PLUNIT_INSTANTIATE(c10::Half)
PLUNIT_INSTANTIATE(c10::BFloat16)

}  // namespace plunit
