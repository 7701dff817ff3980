// The operators plunit::plu as PyTorch's dispatcher sees them, without their gradients.
#pragma once

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "kernel.h"

namespace plunit {
namespace {

using at::Tensor;

// The values of alpha and c, one or one per channel, and the axis of x they belong to (-1: one for all).
struct Values {
  c10::SmallVector<double, 1> alpha, c;
  int64_t axis = -1;
};

// The axis of x that the only axis of `parameter` longer than 1 falls on; -1 if it has one value.
std::optional<int64_t> axis_of(const Tensor& parameter, const Tensor& x) {
  if (parameter.numel() == 1) return parameter.dim() <= x.dim() ? std::optional<int64_t>(-1) : std::nullopt;
  for (int64_t d = 0; d < parameter.dim(); ++d) {
    if (parameter.size(d) == 1) continue;
    const int64_t axis = d + x.dim() - parameter.dim();
    const bool only_one = parameter.size(d) == parameter.numel();
    return only_one && axis >= 0 && x.size(axis) == parameter.numel() ? std::optional(axis) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Values> values_of(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  if (!alpha.is_cpu() || !c.is_cpu() || alpha.numel() == 0 || c.numel() == 0) return std::nullopt;
  const auto alpha_axis = axis_of(alpha, x), c_axis = axis_of(c, x);
  if (!alpha_axis || !c_axis) return std::nullopt;
  if (*alpha_axis >= 0 && *c_axis >= 0 && *alpha_axis != *c_axis) return std::nullopt;
  Values values;
  values.axis = std::max(*alpha_axis, *c_axis);
  const int64_t n = std::max(alpha.numel(), c.numel());
  const auto read = [n](const Tensor& parameter) {
    const Tensor flat = parameter.contiguous();
    c10::SmallVector<double, 1> numbers(n);
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, flat.scalar_type(), "plunit::plu", [&] {
      const auto* data = flat.const_data_ptr<scalar_t>();
      for (int64_t i = 0; i < n; ++i) numbers[i] = static_cast<double>(data[flat.numel() == 1 ? 0 : i]);
    });
    return numbers;
  };
  values.alpha = read(alpha);
  values.c = read(c);
  return values;
}

Values checked_values(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  auto values = values_of(x, alpha, c);
  TORCH_CHECK_VALUE(values, "alpha ", alpha.sizes(), " and c ", c.sizes(),
                    " must hold one value, or one per channel on one axis of x ", x.sizes());
  return std::move(*values);
}

// The least number of dtype T above c, which is not negative.
template <typename T>
wide_t<T> rim_of(wide_t<T> c) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  const T near = static_cast<T>(c);
  if (static_cast<wide_t<T>>(near) > c) return static_cast<wide_t<T>>(near);
  return static_cast<wide_t<T>>(std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(near) + 1)));
}

// The values in the precision of the kernel for dtype T.
template <typename T>
struct Narrowed {
  c10::SmallVector<wide_t<T>, 1> alpha, c, rim;

  explicit Narrowed(const Values& values)
      : alpha(values.alpha.begin(), values.alpha.end()), c(values.c.begin(), values.c.end()) {
    for (const auto edge : c) rim.push_back(rim_of<T>(edge));
  }
  Pieces<wide_t<T>> pieces() const { return {alpha.data(), c.data(), rim.data()}; }
};

Layout layout_of(const Tensor& dense, int64_t axis) {
  if (axis < 0) return {1, 1, dense.numel()};
  const int64_t channels = dense.size(axis), inner = channels == 1 ? dense.numel() : dense.stride(axis);
  return {dense.numel() / (channels * inner), channels, inner};
}

#define PLUNIT_DISPATCH(dtype, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "plunit::plu", __VA_ARGS__)

// y = PLU(x) for dense x and y of the same strides; x and y may be one tensor.
void run_forward(const Tensor& x, const Tensor& y, const Values& values) {
  if (x.numel() == 0) return;
  PLUNIT_DISPATCH(x.scalar_type(), [&] {
    const Narrowed<scalar_t> narrowed(values);
    forward<scalar_t>(x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), narrowed.pieces(),
                      layout_of(x, values.axis));
  });
}

Tensor forward_cpu(const Tensor& x, const Values& values) {
  Tensor y = at::empty_like(x);
  if (x.is_non_overlapping_and_dense()) {
    run_forward(x, y, values);
  } else {
    y.copy_(x);
    run_forward(y, y, values);
  }
  return y;
}

void forward_cpu_(Tensor& x, const Values& values) {
  at::assert_no_internal_overlap(x);
  if (x.is_non_overlapping_and_dense()) {
    run_forward(x, x, values);
  } else {
    x.copy_(forward_cpu(x, values));
  }
}

// `tensor` laid out in memory as `model`.
Tensor like(const Tensor& tensor, const Tensor& model) {
  TORCH_CHECK_VALUE(tensor.sizes() == model.sizes(), "grad ", tensor.sizes(), " and y ", model.sizes(),
                    " must have one shape");
  TORCH_CHECK_TYPE(tensor.scalar_type() == model.scalar_type(), "grad and y must have one dtype");
  if (tensor.strides() == model.strides()) return tensor;
  return at::empty_like(model).copy_(tensor);
}

Tensor dense(const Tensor& tensor) { return tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous(); }

Tensor plu_cpu(const Tensor& x, double alpha, double c) { return forward_cpu(x, {{alpha}, {c}}); }

void plu_cpu_(Tensor& x, double alpha, double c) { forward_cpu_(x, {{alpha}, {c}}); }

Tensor plu_learned_cpu(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  return forward_cpu(x, checked_values(x, alpha, c));
}

void plu_learned_cpu_(Tensor& x, const Tensor& alpha, const Tensor& c) { forward_cpu_(x, checked_values(x, alpha, c)); }

Tensor plu_backward_cpu(const Tensor& grad, const Tensor& y, double alpha, double c) {
  const Tensor out = dense(y), g = like(grad, out);
  Tensor dx = at::empty_like(out);
  if (dx.numel() == 0) return dx;
  PLUNIT_DISPATCH(out.scalar_type(), [&] {
    const Narrowed<scalar_t> narrowed(Values{{alpha}, {c}});
    backward<scalar_t>(g.const_data_ptr<scalar_t>(), out.const_data_ptr<scalar_t>(), dx.mutable_data_ptr<scalar_t>(),
                       narrowed.pieces(), layout_of(out, -1));
  });
  return dx;
}

// The sums per channel as the gradient of `parameter`; where it has one value for all channels, their sum.
Tensor gradient_of(const Tensor& parameter, const Tensor& sums) {
  const Tensor total = parameter.numel() == 1 ? sums.sum() : sums;
  return total.reshape(parameter.sizes()).to(parameter.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor> plu_learned_backward_cpu(const Tensor& grad, const Tensor& y, const Tensor& alpha,
                                                            const Tensor& c) {
  const Values values = checked_values(y, alpha, c);
  const Tensor out = dense(y), g = like(grad, out);
  Tensor dx = at::empty_like(out);
  const Tensor sums = at::zeros({2, static_cast<int64_t>(values.alpha.size())}, at::kDouble);
  if (dx.numel() > 0) {
    PLUNIT_DISPATCH(out.scalar_type(), [&] {
      const Narrowed<scalar_t> narrowed(values);
      double* dalpha = sums.mutable_data_ptr<double>();
      backward_learned<scalar_t>(g.const_data_ptr<scalar_t>(), out.const_data_ptr<scalar_t>(),
                                 dx.mutable_data_ptr<scalar_t>(), dalpha, dalpha + values.alpha.size(),
                                 narrowed.pieces(), layout_of(out, values.axis));
    });
  }
  return {dx, gradient_of(alpha, sums[0]), gradient_of(c, sums[1])};
}

}  // namespace

// The largest number of the precision in which PLU of x is computed.
inline double most_of(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

// The least alpha and the least c; NaN if one of the values is beyond `most_of(x)`. Empty if the kernels have no loop for
// these shapes. They have loops for one value, and for one value per channel on a single axis of x.
struct Least {
  double alpha, c;
};
inline std::optional<Least> least_of(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  const auto values = values_of(x, alpha, c);
  if (!values) return std::nullopt;
  const auto least = [most = most_of(x)](const auto& numbers) {
    double low = std::numeric_limits<double>::infinity();
    for (const double number : numbers) {
      if (!(std::abs(number) <= most)) return std::nan("");
      low = std::min(low, number);
    }
    return low;
  };
  return Least{least(values->alpha), least(values->c)};
}

TORCH_LIBRARY(plunit, m) {
  m.def("plu(Tensor x, float alpha, float c) -> Tensor");
  m.def("plu_(Tensor(a!) x, float alpha, float c) -> ()");
  m.def("plu.learned(Tensor x, Tensor alpha, Tensor c) -> Tensor");
  m.def("plu_.learned(Tensor(a!) x, Tensor alpha, Tensor c) -> ()");
  m.def("plu_backward(Tensor grad, Tensor y, float alpha, float c) -> Tensor");
  m.def("plu_backward.learned(Tensor grad, Tensor y, Tensor alpha, Tensor c) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(plunit, CPU, m) {
  m.impl("plu", plu_cpu);
  m.impl("plu_", plu_cpu_);
  m.impl("plu.learned", plu_learned_cpu);
  m.impl("plu_.learned", plu_learned_cpu_);
  m.impl("plu_backward", plu_backward_cpu);
  m.impl("plu_backward.learned", plu_learned_backward_cpu);
}

TORCH_LIBRARY_IMPL(plunit, Meta, m) {
  m.impl("plu", [](const Tensor& x, double, double) { return at::empty_like(x); });
  m.impl("plu_", [](Tensor&, double, double) {});
  m.impl("plu.learned", [](const Tensor& x, const Tensor&, const Tensor&) { return at::empty_like(x); });
  m.impl("plu_.learned", [](Tensor&, const Tensor&, const Tensor&) {});
  m.impl("plu_backward", [](const Tensor&, const Tensor& y, double, double) { return at::empty_like(y); });
  m.impl("plu_backward.learned", [](const Tensor&, const Tensor& y, const Tensor& alpha, const Tensor& c) {
    return std::make_tuple(at::empty_like(y), at::empty_like(alpha), at::empty_like(c));
  });
}

}  // namespace plunit
