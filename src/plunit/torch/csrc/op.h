// The operators plunit::plu and their gradients, as PyTorch sees them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace plunit {

// Calls through PyTorch's dispatcher, with autograd and the profiler.
at::Tensor plu(const at::Tensor& x, double alpha, double c);
void plu_(at::Tensor& x, double alpha, double c);
at::Tensor plu(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);
void plu_(at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);

// The largest number of the precision in which PLU of x is computed.
double most_of(const at::Tensor& x);

// The least alpha and the least c; NaN if one of the values is beyond `most_of(x)`. Empty if the kernels have no loop for these
// shapes. They have loops for one value, and for one value per channel on a single axis of x.
struct Least {
  double alpha, c;
};
std::optional<Least> least_of(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& c);

}  // namespace plunit
