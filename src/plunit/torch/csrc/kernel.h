// The loops of PLU over contiguous memory: forward, and backward from the output.
#pragma once

#include <cstdint>
#include <type_traits>

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

template <typename T>
void forward(const T* x, T* y, Pieces<wide_t<T>> pieces, Layout layout);

template <typename T>
void backward(const T* grad, const T* y, T* dx, Pieces<wide_t<T>> pieces, Layout layout);

// Besides dx: the gradients of alpha and c, summed per channel.
template <typename T>
void backward_learned(const T* grad, const T* y, T* dx, double* dalpha, double* dc, Pieces<wide_t<T>> pieces,
                      Layout layout);

}  // namespace plunit
