// SPDX-License-Identifier: Apache-2.0
// Kernels with one input and one output of its sizes, and the gradients of activations.
#include <cmath>

#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

// Runs `body(x, y, count)` on elements of type `dtype` at two addresses, in the stream.
template <typename F>
Make Unary(F f) {
  return [f](const weft_op& op, Launch* launch, weft_error*) {
    const int32_t dtype = op.input_dtypes[0];
    *launch = [f, dtype](weft_stream* stream, const weft_call& call, weft_error*) {
      const weft_tensor x = call.inputs[0];
      const weft_tensor* const y = Output(call, 0, 0, DimsOf(x));
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, from = x.address, to = y->address, count = x.elements] {
        ForNumber(dtype, [&]<typename T>(T) {
          const T* const in = memory->At<T>(from);
          T* const out = memory->At<T>(to);
          for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(f(in[i]));
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

// Two inputs of the same sizes.
template <typename F>
Make Pairwise(F f) {
  return [f](const weft_op& op, Launch* launch, weft_error*) {
    const int32_t dtype = op.input_dtypes[0];
    *launch = [f, dtype](weft_stream* stream, const weft_call& call, weft_error* error) {
      const weft_tensor a = call.inputs[0];
      const weft_tensor b = call.inputs[1];
      if (DimsOf(a) != DimsOf(b)) {
        return Fail(error, WEFT_INVALID_ARGUMENT, "inputs must have one shape");
      }
      const weft_tensor* const y = Output(call, 0, -1, DimsOf(a));
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, x0 = a.address, x1 = b.address, to = y->address, count = a.elements] {
        ForReal(dtype, [&]<typename T>(T) {
          const T* const p = memory->At<T>(x0);
          const T* const q = memory->At<T>(x1);
          T* const out = memory->At<T>(to);
          for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(f(p[i], q[i]));
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

// Output of input 0's sizes, all `value`.
Make Constant(int value) {
  return [value](const weft_op& op, Launch* launch, weft_error*) {
    const int32_t dtype = op.input_dtypes[0];
    *launch = [value, dtype](weft_stream* stream, const weft_call& call, weft_error*) {
      const weft_tensor* const y = Output(call, 0, -1, DimsOf(call.inputs[0]));
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, to = y->address, count = y->elements] {
        ForNumber(dtype, [&]<typename T>(T) {
          std::fill_n(memory->At<T>(to), count, static_cast<T>(value));
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

int MakeLogicalNot(const weft_op&, Launch* launch, weft_error*) {
  *launch = [](weft_stream* stream, const weft_call& call, weft_error*) {
    const weft_tensor x = call.inputs[0];
    const weft_tensor* const y = Output(call, 0, 0, DimsOf(x));
    if (y == nullptr) return WEFT_OUT_OF_MEMORY;
    const Memory* const memory = &stream->device->memory;
    stream->Ask([=, from = x.address, to = y->address, count = x.elements] {
      for (int64_t i = 0; i < count; ++i) memory->At<bool>(to)[i] = !memory->At<bool>(from)[i];
    });
    return WEFT_OK;
  };
  return WEFT_OK;
}

template <typename T>
T Sigmoid(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace

void AddElementwise(std::vector<Kernel>* kernels) {
  const std::vector<int32_t> reals = {kFloat, kDouble};
  const std::vector<int32_t> numbers = {kFloat, kDouble, kInt32, kInt64};
  const auto add = [&](const char* op, const std::vector<int32_t>& types, Make make) {
    kernels->push_back({op, {{"T", types}}, std::move(make)});
  };
  add("Square", reals, Unary([](auto x) { return x * x; }));
  add("Exp", reals, Unary([](auto x) { return std::exp(x); }));
  add("Log", reals, Unary([](auto x) { return std::log(x); }));
  add("Log1p", reals, Unary([](auto x) { return std::log1p(x); }));
  add("Sqrt", reals, Unary([](auto x) { return std::sqrt(x); }));
  add("Rsqrt", reals, Unary([](auto x) { return 1 / std::sqrt(x); }));
  add("Neg", reals, Unary([](auto x) { return -x; }));
  add("Abs", reals, Unary([](auto x) { return std::fabs(x); }));
  add("Floor", reals, Unary([](auto x) { return std::floor(x); }));
  add("Ceil", reals, Unary([](auto x) { return std::ceil(x); }));
  add("Sin", reals, Unary([](auto x) { return std::sin(x); }));
  add("Cos", reals, Unary([](auto x) { return std::cos(x); }));
  add("Tanh", reals, Unary([](auto x) { return std::tanh(x); }));
  add("Reciprocal", reals, Unary([](auto x) { return 1 / x; }));
  add("Sigmoid", reals, Unary([](auto x) { return Sigmoid(x); }));
  add("Relu", reals, Unary([](auto x) { return x < 0 ? decltype(x){} : x; }));
  add("ReluGrad", reals, Pairwise([](auto g, auto x) { return x > 0 ? g : decltype(g){}; }));
  add("TanhGrad", reals, Pairwise([](auto y, auto g) { return g * (1 - y * y); }));
  add("SigmoidGrad", reals, Pairwise([](auto y, auto g) { return g * y * (1 - y); }));
  add("SqrtGrad", reals, Pairwise([](auto y, auto g) { return g * decltype(g)(0.5) / y; }));
  add("ZerosLike", numbers, Constant(0));
  add("OnesLike", numbers, Constant(1));
  kernels->push_back({"LogicalNot", {}, MakeLogicalNot});
}

}  // namespace asic
