// SPDX-License-Identifier: Apache-2.0
// Updates of variables, by reference and by handle. Reading and assigning need no kernel: weft
// passes the bytes on.
#include <cmath>

#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

// Which inputs of an optimizer are what.
struct Update {
  int num_variables = 1;
  // Gets the addresses of all inputs, the number of elements, and how to find them.
  std::function<void(const Memory&, int32_t dtype, const std::vector<uint64_t>&, int64_t)> run;
  int gradient = -1;         // has the variable's sizes
  std::vector<int> scalars;  // learning rates and their like
};

Make MakeUpdate(const Update& update) {
  return [update](const weft_op& op, Launch* launch, weft_error*) {
    const int32_t dtype = op.input_dtypes[update.gradient];
    *launch = [update, dtype](weft_stream* stream, const weft_call& call, weft_error* error) {
      const Dims dims = DimsOf(call.inputs[0]);
      for (int i = 1; i < update.num_variables; ++i) {
        if (DimsOf(call.inputs[i]) != dims) {
          return Fail(error, WEFT_INVALID_ARGUMENT,
                      "var and slots do not have the same shape " + Text(dims) + " " +
                          Text(DimsOf(call.inputs[i])));
        }
      }
      for (const int i : update.scalars) {
        if (call.inputs[i].rank != 0) {
          return Fail(
              error, WEFT_INVALID_ARGUMENT,
              "input " + std::to_string(i) + " is not a scalar: " + Text(DimsOf(call.inputs[i])));
        }
      }
      if (DimsOf(call.inputs[update.gradient]) != dims) {
        return Fail(error, WEFT_INVALID_ARGUMENT,
                    "var and delta do not have the same shape " + Text(dims) + " " +
                        Text(DimsOf(call.inputs[update.gradient])));
      }
      std::vector<uint64_t> at;
      for (int i = 0; i < call.num_inputs; ++i) at.push_back(call.inputs[i].address);
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, run = update.run, count = call.inputs[0].elements] {
        run(*memory, dtype, at, count);
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

// variable = variable + sign * delta, with a step size before the delta if `scaled`.
Update Descent(double sign, bool scaled) {
  Update update;
  update.gradient = scaled ? 2 : 1;
  if (scaled) update.scalars = {1};
  update.run = [=](const Memory& memory, int32_t dtype, const std::vector<uint64_t>& at,
                   int64_t count) {
    ForNumber(dtype, [&]<typename T>(T) {
      T* const variable = memory.At<T>(at[0]);
      const T* const delta = memory.At<T>(at[scaled ? 2 : 1]);
      const T step = scaled ? *memory.At<T>(at[1]) : T{1};
      for (int64_t i = 0; i < count; ++i) {
        variable[i] = static_cast<T>(sign > 0 ? variable[i] + step * delta[i]
                                              : variable[i] - step * delta[i]);
      }
    });
  };
  return update;
}

// Inputs: var, accum, lr, grad, momentum.
Make MakeMomentum() {
  return [](const weft_op& op, Launch* launch, weft_error* error) {
    int nesterov = 0;
    op.get_bool(op.attributes, "use_nesterov", &nesterov);
    Update update;
    update.num_variables = 2;
    update.gradient = 3;
    update.scalars = {2, 4};
    update.run = [nesterov](const Memory& memory, int32_t dtype, const std::vector<uint64_t>& at,
                            int64_t count) {
      ForReal(dtype, [&]<typename T>(T) {
        T* const variable = memory.At<T>(at[0]);
        T* const velocity = memory.At<T>(at[1]);
        const T rate = *memory.At<T>(at[2]);
        const T* const gradient = memory.At<T>(at[3]);
        const T momentum = *memory.At<T>(at[4]);
        for (int64_t i = 0; i < count; ++i) {
          velocity[i] = velocity[i] * momentum + gradient[i];
          variable[i] -=
              nesterov ? gradient[i] * rate + velocity[i] * momentum * rate : velocity[i] * rate;
        }
      });
    };
    return MakeUpdate(update)(op, launch, error);
  };
}

// Inputs: var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad.
Make MakeAdam() {
  return [](const weft_op& op, Launch* launch, weft_error* error) {
    int nesterov = 0;
    op.get_bool(op.attributes, "use_nesterov", &nesterov);
    Update update;
    update.num_variables = 3;
    update.gradient = 9;
    update.scalars = {3, 4, 5, 6, 7, 8};
    update.run = [nesterov](const Memory& memory, int32_t dtype, const std::vector<uint64_t>& at,
                            int64_t count) {
      ForReal(dtype, [&]<typename T>(T) {
        const auto scalar = [&](int i) { return *memory.At<T>(at[i]); };
        T* const variable = memory.At<T>(at[0]);
        T* const m = memory.At<T>(at[1]);
        T* const v = memory.At<T>(at[2]);
        const T* const g = memory.At<T>(at[9]);
        const T rate = scalar(5) * std::sqrt(1 - scalar(4)) / (1 - scalar(3));
        for (int64_t i = 0; i < count; ++i) {
          m[i] += (g[i] - m[i]) * (1 - scalar(6));
          v[i] += (g[i] * g[i] - v[i]) * (1 - scalar(7));
          const T step = nesterov ? g[i] * (1 - scalar(6)) + scalar(6) * m[i] : m[i];
          variable[i] -= step * rate / (std::sqrt(v[i]) + scalar(8));
        }
      });
    };
    return MakeUpdate(update)(op, launch, error);
  };
}

}  // namespace

void AddVariables(std::vector<Kernel>* kernels) {
  const std::vector<int32_t> reals = {kFloat, kDouble};
  kernels->push_back({"AssignAdd", {{"T", reals}}, MakeUpdate(Descent(1, false)), 1});
  kernels->push_back({"AssignSub", {{"T", reals}}, MakeUpdate(Descent(-1, false)), 1});
  kernels->push_back({"AssignAddVariableOp", {{"dtype", reals}}, MakeUpdate(Descent(1, false)), 1});
  kernels->push_back(
      {"AssignSubVariableOp", {{"dtype", reals}}, MakeUpdate(Descent(-1, false)), 1});
  for (const std::string prefix : {"", "Resource"}) {
    const auto add = [&](const std::string& op, Make make, uint64_t writes) {
      kernels->push_back({prefix + op, {{"T", reals}}, std::move(make), writes});
    };
    add("ApplyGradientDescent", MakeUpdate(Descent(-1, true)), 1);
    add("ApplyMomentum", MakeMomentum(), 3);
    add("ApplyAdam", MakeAdam(), 7);
  }
}

}  // namespace asic
