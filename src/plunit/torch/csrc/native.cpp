// plunit.torch._native.plu(x, alpha, c, inplace): the op without the cost of torch.ops, or None where it does not
// apply.
#include <ATen/ATen.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd.h"

namespace {

using at::Tensor;

// Nothing but a CPU tensor and autograd: no subclass, mode, tracer, vmap, or fake tensor that must see other ops.
bool is_plain(const Tensor& tensor) {
  using c10::DispatchKey;
  static const c10::DispatchKeySet usual({DispatchKey::Dense, DispatchKey::AutogradFunctionality,
                                          DispatchKey::ADInplaceOrView, DispatchKey::BackendSelect,
                                          DispatchKey::AutocastCPU});
  const auto local = c10::impl::tls_local_dispatch_key_set();
  const auto keys = ((tensor.key_set() | local.included_) - local.excluded_) - usual;
  return tensor.is_cpu() && (keys.raw_repr() & ~c10::full_backend_mask) == 0 &&
         !torch::autograd::isFwGradDefined(tensor);
}

bool is_supported(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kBFloat16 || dtype == at::kHalf;
}

// A Python number, or NaN for anything else.
double number(PyObject* object) {
  const bool is_number = PyFloat_Check(object) || PyLong_CheckExact(object);
  const double value = is_number ? PyFloat_AsDouble(object) : std::nan("");
  if (PyErr_Occurred()) PyErr_Clear();  // an integer beyond all floats
  return value;
}

// A plain floating-point tensor, or a number as one; undefined for anything else.
Tensor parameter(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_CheckExact(object)) return at::scalar_tensor(number(object), at::kDouble);
  if (!THPVariable_CheckExact(object)) return {};
  const Tensor& tensor = THPVariable_Unpack(object);
  return is_plain(tensor) && is_supported(tensor.scalar_type()) ? tensor : Tensor();
}

template <typename Parameter>
PyObject* call(Tensor x, Parameter alpha, Parameter c, bool inplace) {
  {
    pybind11::gil_scoped_release no_gil;
    if (inplace) {
      plunit::plu_(x, alpha, c);
    } else {
      x = plunit::plu(x, alpha, c);
    }
  }
  return THPVariable_Wrap(std::move(x));
}

// Whether the kernels serve these numbers. Backward divides by alpha.
bool are_served(double alpha, double c) {
  return alpha >= std::numeric_limits<float>::min() && c >= 0 && std::isfinite(alpha) && std::isfinite(c);
}

// Whether the kernels serve these tensors. The gradient of alpha needs x - m = (y - m) / alpha. For a small alpha, and in
// half precision, y has too few digits for it.
bool are_served(const Tensor& x, const Tensor& alpha, const Tensor& c) {
  if (!alpha.defined() || !c.defined()) return false;
  const auto least = plunit::least_of(x, alpha, c);
  if (!least || !are_served(least->alpha, least->c)) return false;
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return !torch::autograd::compute_requires_grad(alpha) || (least->alpha >= 1e-3 && !half);
}

// This function decides which calls the native kernels serve; it returns None for the others.
PyObject* plu(PyObject*, PyObject* const* args, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "plu takes x, alpha, c and inplace");
    return nullptr;
  }
  if (!THPVariable_CheckExact(args[0])) Py_RETURN_NONE;
  const Tensor& x = THPVariable_Unpack(args[0]);
  const bool inplace = PyObject_IsTrue(args[3]) == 1;
  if (!is_plain(x) || !is_supported(x.scalar_type())) Py_RETURN_NONE;
  if (inplace && x.is_inference() && !c10::InferenceMode::is_enabled()) Py_RETURN_NONE;

  const double alpha = number(args[1]), c = number(args[2]);
  const double most = plunit::most_of(x);  // what is beyond it counts as that number
  if (are_served(alpha, c)) return call(x, std::min(alpha, most), std::min(c, most), inplace);

  const Tensor alphas = parameter(args[1]), cs = parameter(args[2]);
  if (are_served(x, alphas, cs)) return call<const Tensor&>(x, alphas, cs, inplace);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {{"plu", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plu)), METH_FASTCALL,
                          "plu(x, alpha, c, inplace): PLU of a plain CPU tensor, or None"},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit__native() { return PyModule_Create(&module); }
