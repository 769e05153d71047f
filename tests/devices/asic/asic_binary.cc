// SPDX-License-Identifier: Apache-2.0
// Kernels of two inputs that are broadcast, choices between two, and sums of many.
#include <algorithm>
#include <cmath>

#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

// Out(f(a, b)) for each pair of elements of type `In`.
template <typename In, typename Out, typename F>
void Apply(const Memory& memory, uint64_t a, const std::vector<int64_t>& in_a, uint64_t b,
           const std::vector<int64_t>& in_b, uint64_t to, F f) {
  const In* const x = memory.At<In>(a);
  const In* const y = memory.At<In>(b);
  Out* const out = memory.At<Out>(to);
  for (size_t i = 0; i < in_a.size(); ++i) out[i] = static_cast<Out>(f(x[in_a[i]], y[in_b[i]]));
}

// `kCompares`: outputs are bool.
template <bool kCompares, typename F>
Make Binary(F f) {
  return [f](const weft_op& op, Launch* launch, weft_error*) {
    const int32_t dtype = op.input_dtypes[0];
    *launch = [f, dtype](weft_stream* stream, const weft_call& call, weft_error* error) {
      const weft_tensor a = call.inputs[0];
      const weft_tensor b = call.inputs[1];
      const Dims dims_a = DimsOf(a);
      const Dims dims_b = DimsOf(b);
      Dims dims;
      if (!Broadcast(dims_a, dims_b, &dims)) {
        return Fail(error, WEFT_INVALID_ARGUMENT,
                    "Incompatible shapes: " + Text(dims_a) + " vs. " + Text(dims_b));
      }
      const int reuse = kCompares ? -1 : dims_a == dims ? 0 : -1;
      const weft_tensor* const y = Output(call, 0, reuse, dims);
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, p = a.address, q = b.address, to = y->address] {
        const std::vector<int64_t> in_a = Positions(dims_a, dims);
        const std::vector<int64_t> in_b = Positions(dims_b, dims);
        if (dtype == kBool) {
          Apply<bool, bool>(*memory, p, in_a, q, in_b, to, f);
          return;
        }
        ForNumber(dtype, [&]<typename T>(T) {
          Apply<T, std::conditional_t<kCompares, bool, T>>(*memory, p, in_a, q, in_b, to, f);
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

int MakeAddN(const weft_op& op, Launch* launch, weft_error*) {
  *launch = [dtype = op.input_dtypes[0]](weft_stream* stream, const weft_call& call,
                                         weft_error* error) {
    const Dims dims = DimsOf(call.inputs[0]);
    std::vector<uint64_t> from;
    for (int i = 0; i < call.num_inputs; ++i) {
      if (DimsOf(call.inputs[i]) != dims) {
        return Fail(error, WEFT_INVALID_ARGUMENT,
                    "Inputs to AddN must have the same shape: " + Text(dims) + " and " +
                        Text(DimsOf(call.inputs[i])));
      }
      from.push_back(call.inputs[i].address);
    }
    const weft_tensor* const y = Output(call, 0, -1, dims);
    if (y == nullptr) return WEFT_OUT_OF_MEMORY;
    const Memory* const memory = &stream->device->memory;
    stream->Ask([=, to = y->address, count = y->elements] {
      ForNumber(dtype, [&]<typename T>(T) {
        T* const out = memory->At<T>(to);
        std::copy_n(memory->At<T>(from[0]), count, out);
        for (size_t k = 1; k < from.size(); ++k) {
          const T* const in = memory->At<T>(from[k]);
          for (int64_t i = 0; i < count; ++i) out[i] += in[i];
        }
      });
    });
    return WEFT_OK;
  };
  return WEFT_OK;
}

int MakeSelect(const weft_op& op, Launch* launch, weft_error*) {
  *launch = [dtype = op.input_dtypes[1]](weft_stream* stream, const weft_call& call,
                                         weft_error* error) {
    Dims all[3] = {DimsOf(call.inputs[0]), DimsOf(call.inputs[1]), DimsOf(call.inputs[2])};
    Dims between;
    Dims dims;
    if (!Broadcast(all[0], all[1], &between) || !Broadcast(between, all[2], &dims)) {
      return Fail(error, WEFT_INVALID_ARGUMENT,
                  "condition " + Text(all[0]) + ", then " + Text(all[1]) + ", and else " +
                      Text(all[2]) + " must be broadcastable");
    }
    const weft_tensor* const y = Output(call, 0, -1, dims);
    if (y == nullptr) return WEFT_OUT_OF_MEMORY;
    const Memory* const memory = &stream->device->memory;
    const uint64_t c = call.inputs[0].address;
    const uint64_t t = call.inputs[1].address;
    const uint64_t e = call.inputs[2].address;
    stream->Ask([=, at0 = Positions(all[0], dims), at1 = Positions(all[1], dims),
                 at2 = Positions(all[2], dims), to = y->address] {
      ForNumber(dtype, [&]<typename T>(T) {
        for (size_t i = 0; i < at0.size(); ++i) {
          memory->At<T>(to)[i] =
              memory->At<bool>(c)[at0[i]] ? memory->At<T>(t)[at1[i]] : memory->At<T>(e)[at2[i]];
        }
      });
    });
    return WEFT_OK;
  };
  return WEFT_OK;
}

// Adds a vector to the last dimension.
int MakeBiasAdd(const weft_op& op, Launch* launch, weft_error*) {
  const char* format = "NHWC";
  op.get_string(op.attributes, "data_format", &format);
  const bool channels_last = std::string(format) == "NHWC";
  *launch = [dtype = op.input_dtypes[0], channels_last](weft_stream* stream, const weft_call& call,
                                                        weft_error* error) {
    const Dims dims = DimsOf(call.inputs[0]);
    const Dims bias = DimsOf(call.inputs[1]);
    const size_t axis = channels_last ? dims.size() - 1 : 1;
    if (dims.size() < 2 || bias.size() != 1 || dims[axis] != bias[0]) {
      return Fail(error, WEFT_INVALID_ARGUMENT,
                  "Must provide as many biases as the last dimension of the input tensor: " +
                      Text(bias) + " vs. " + Text(dims));
    }
    Dims spread(dims.size(), 1);
    spread[axis] = bias[0];
    const weft_tensor* const y = Output(call, 0, 0, dims);
    if (y == nullptr) return WEFT_OUT_OF_MEMORY;
    const Memory* const memory = &stream->device->memory;
    stream->Ask([=, x = call.inputs[0].address, b = call.inputs[1].address, to = y->address,
                 at = Positions(spread, dims)] {
      ForReal(dtype, [&]<typename T>(T) {
        for (size_t i = 0; i < at.size(); ++i) {
          memory->At<T>(to)[i] = memory->At<T>(x)[i] + memory->At<T>(b)[at[i]];
        }
      });
    });
    return WEFT_OK;
  };
  return WEFT_OK;
}

}  // namespace

void AddBinary(std::vector<Kernel>* kernels) {
  const std::vector<int32_t> reals = {kFloat, kDouble};
  const std::vector<int32_t> numbers = {kFloat, kDouble, kInt32, kInt64};
  const auto add = [&](const char* op, const std::vector<int32_t>& types, Make make) {
    kernels->push_back({op, {{"T", types}}, std::move(make)});
  };
  add("Add", reals, Binary<false>([](auto a, auto b) { return a + b; }));
  add("AddV2", reals, Binary<false>([](auto a, auto b) { return a + b; }));
  add("Sub", reals, Binary<false>([](auto a, auto b) { return a - b; }));
  add("Mul", reals, Binary<false>([](auto a, auto b) { return a * b; }));
  add("RealDiv", reals, Binary<false>([](auto a, auto b) { return a / b; }));
  add("SquaredDifference", reals, Binary<false>([](auto a, auto b) { return (a - b) * (a - b); }));
  add("Maximum", {kInt32, kInt64}, Binary<false>([](auto a, auto b) { return std::max(a, b); }));
  add("Minimum", {kInt32, kInt64}, Binary<false>([](auto a, auto b) { return std::min(a, b); }));
  add("Less", numbers, Binary<true>([](auto a, auto b) { return a < b; }));
  add("LessEqual", numbers, Binary<true>([](auto a, auto b) { return a <= b; }));
  add("Greater", numbers, Binary<true>([](auto a, auto b) { return a > b; }));
  add("GreaterEqual", numbers, Binary<true>([](auto a, auto b) { return a >= b; }));
  kernels->push_back({"LogicalAnd", {}, Binary<true>([](auto a, auto b) { return a && b; })});
  kernels->push_back({"LogicalOr", {}, Binary<true>([](auto a, auto b) { return a || b; })});
  add("AddN", reals, MakeAddN);
  add("SelectV2", numbers, MakeSelect);
  add("BiasAdd", reals, MakeBiasAdd);
}

}  // namespace asic
