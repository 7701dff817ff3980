// Gradients of plunit::plu from its output, by one kernel. If the gradients are to be differentiated again, they are
// ordinary ATen expressions of the output, which is itself a function of x, alpha and c.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "op.h"

namespace plunit {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The typed handle of a registered operator.
template <typename Signature>
auto handle(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

// Calls through PyTorch's dispatcher, with autograd and the profiler.

Tensor plu(const Tensor& x, double alpha, double c) {
  static const auto op = handle<Tensor(const Tensor&, double, double)>("plunit::plu", "");
  return op.call(x, alpha, c);
}

void plu_(Tensor& x, double alpha, double c) {
  static const auto op = handle<void(Tensor&, double, double)>("plunit::plu_", "");
  op.call(x, alpha, c);
}

Tensor plu(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  static const auto op = handle<Tensor(const Tensor&, const Tensor&, const Tensor&)>("plunit::plu", "learned");
  return op.call(x, alpha, c);
}

void plu_(Tensor& x, const Tensor& alpha, const Tensor& c) {
  static const auto op = handle<void(Tensor&, const Tensor&, const Tensor&)>("plunit::plu_", "learned");
  op.call(x, alpha, c);
}

Tensor plu_backward(const Tensor& grad, const Tensor& y, double alpha, double c) {
  static const auto op = handle<Tensor(const Tensor&, const Tensor&, double, double)>("plunit::plu_backward", "");
  return op.call(grad, y, alpha, c);
}

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

Gradients plu_backward(const Tensor& grad, const Tensor& y, const Tensor& alpha, const Tensor& c) {
  static const auto op =
      handle<Gradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>("plunit::plu_backward", "learned");
  return op.call(grad, y, alpha, c);
}

// PLU below autograd, into x itself or into a new tensor.
template <typename Parameter>
Tensor evaluate(AutogradContext* ctx, Tensor x, Parameter alpha, Parameter c, bool inplace) {
  at::AutoDispatchBelowADInplaceOrView below;
  if (!inplace) return plu(x, alpha, c);
  plu_(x, alpha, c);
  ctx->mark_dirty({x});
  return x;
}

struct PLU : torch::autograd::Function<PLU> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double alpha, double c, bool inplace) {
    const Tensor y = evaluate(ctx, x, alpha, c, inplace);
    ctx->save_for_backward({y});
    ctx->saved_data["alpha"] = alpha;
    ctx->saved_data["c"] = c;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor y = ctx->get_saved_variables()[0];
    const double alpha = ctx->saved_data["alpha"].toDouble(), c = ctx->saved_data["c"].toDouble();
    return {plu_backward(grads[0], y, alpha, c), Tensor(), Tensor(), Tensor()};
  }
};

struct LearnedPLU : torch::autograd::Function<LearnedPLU> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& alpha, const Tensor& c, bool inplace) {
    const Tensor y = evaluate<const Tensor&>(ctx, x, alpha, c, inplace);
    ctx->save_for_backward({y, alpha, c});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    auto [dx, dalpha, dc] = plu_backward(grads[0], saved[0], saved[1], saved[2]);
    return {dx, dalpha, dc, Tensor()};
  }
};

// A node remembers the input that it overwrote. Nothing needs this afterwards, and compiled autograd does not accept it.
template <typename Node>
void forget_overwritten(const Tensor& x) {
  if (auto* node = dynamic_cast<torch::autograd::CppNode<Node>*>(x.grad_fn().get())) node->ctx_.mark_dirty({});
}

// Returns dx, with the derivative 0 with respect to y, as PyTorch's own activations have it.
struct Connected : torch::autograd::Function<Connected> {
  static Tensor forward(AutogradContext* ctx, const Tensor& dx, const Tensor& y) {
    ctx->save_for_backward({y});
    return dx.view_as(dx);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0], at::zeros_like(ctx->get_saved_variables()[0])};
  }
};

Tensor connected(const Tensor& dx, const Tensor& y) { return y.requires_grad() ? Connected::apply(dx, y) : dx; }

bool tracked(at::ArrayRef<Tensor> tensors) {
  return at::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.requires_grad(); });
}

Tensor plu_autograd(const Tensor& x, double alpha, double c) {
  if (tracked({x})) return PLU::apply(x, alpha, c, false);
  at::AutoDispatchBelowADInplaceOrView below;
  return plu(x, alpha, c);
}

Tensor plu_learned_autograd(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  return LearnedPLU::apply(x, alpha, c, false);
}

void plu_autograd_(Tensor& x, double alpha, double c) {
  torch::autograd::check_inplace(x, tracked({x}));
  PLU::apply(x, alpha, c, true);
  forget_overwritten<PLU>(x);
}

void plu_learned_autograd_(Tensor& x, const Tensor& alpha, const Tensor& c) {
  torch::autograd::check_inplace(x, tracked({x, alpha, c}));
  LearnedPLU::apply(x, alpha, c, true);
  forget_overwritten<LearnedPLU>(x);
}

// The precision of the kernels: half precision is computed in float.
at::ScalarType wide_type(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor plu_backward_autograd(const Tensor& grad, const Tensor& y, double alpha, double c) {
  if (tracked({grad, y})) {
    const Tensor g = grad.to(wide_type(y));
    return connected(at::where(y.to(wide_type(y)).abs() > c, g * alpha, g).to(y.scalar_type()), y);
  }
  at::AutoDispatchBelowADInplaceOrView below;
  return plu_backward(grad, y, alpha, c);
}

Gradients plu_learned_backward_autograd(const Tensor& grad, const Tensor& y, const Tensor& alpha, const Tensor& c) {
  if (tracked({grad, y, alpha, c})) {
    const auto type = wide_type(y);
    const Tensor g = grad.to(type), out = y.to(type), a = alpha.to(type), edge = c.to(type);
    const Tensor outside = out.abs() > edge, sign = out.sign(), none = at::zeros({}, out.options());
    const Tensor dalpha = at::where(out.abs() <= edge, none, g * (out - edge * sign) / a);  // a NaN stays one
    const Tensor dc = at::where(outside, g * sign * (1 - a), none);
    const Tensor dx = at::where(outside, g * a, g).to(y.scalar_type());
    return {connected(dx, y), at::sum_to(dalpha, alpha.sizes()).to(alpha.scalar_type()),
            at::sum_to(dc, c.sizes()).to(c.scalar_type())};
  }
  at::AutoDispatchBelowADInplaceOrView below;
  return plu_backward(grad, y, alpha, c);
}

}  // namespace

TORCH_LIBRARY_IMPL(plunit, Autograd, m) {
  m.impl("plu", plu_autograd);
  m.impl("plu_", plu_autograd_);
  m.impl("plu.learned", plu_learned_autograd);
  m.impl("plu_.learned", plu_learned_autograd_);
  m.impl("plu_backward", plu_backward_autograd);
  m.impl("plu_backward.learned", plu_learned_backward_autograd);
}

}  // namespace plunit
