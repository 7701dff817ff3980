// The operators plunit::plu and their gradients, as PyTorch sees them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace plunit {

// Through the dispatcher: autograd, profiler and all.
at::Tensor plu(const at::Tensor& x, double alpha, double c);
void plu_(at::Tensor& x, double alpha, double c);
at::Tensor plu(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);
void plu_(at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);

// Whether the kernels take these parameters: one value, or one per channel on a single axis of x; c >= 0, and alpha
// far enough from 0 that x - m = (y - m) / alpha keeps its digits where the gradient of alpha needs it.
bool takes(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);

}  // namespace plunit
