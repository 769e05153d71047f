// SPDX-License-Identifier: Apache-2.0
// Reductions along the axes that a tensor on the host names.
#include <algorithm>
#include <limits>

#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

enum class Reduction { kSum, kMean, kProd, kMax, kMin };

template <typename T>
T Start(Reduction how) {
  if (how == Reduction::kProd) return T{1};
  if (how == Reduction::kMax) return -std::numeric_limits<T>::infinity();
  if (how == Reduction::kMin) return std::numeric_limits<T>::infinity();
  return T{0};
}

template <typename T>
void Take(Reduction how, T x, T* sum) {
  switch (how) {
    case Reduction::kProd:
      *sum *= x;
      return;
    case Reduction::kMax:
      *sum = x > *sum || x != x ? x : *sum;
      return;
    case Reduction::kMin:
      *sum = x < *sum || x != x ? x : *sum;
      return;
    default:
      *sum += x;
  }
}

// Which dimensions of `rank` the tensor of axes names; false for one out of range or named twice.
bool ReadAxes(const weft_tensor& axes, int rank, std::vector<bool>* reduced, std::string* wrong) {
  reduced->assign(static_cast<size_t>(rank), false);
  for (int64_t i = 0; i < axes.elements; ++i) {
    const int64_t axis = axes.dtype == kInt32 ? static_cast<const int32_t*>(axes.on_host)[i]
                                              : static_cast<const int64_t*>(axes.on_host)[i];
    if (axis < -rank || axis >= rank) {
      *wrong = "Invalid reduction dimension (" + std::to_string(axis) + " for input with " +
               std::to_string(rank) + " dimension(s)";
      return false;
    }
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if ((*reduced)[at]) {
      *wrong =
          "Invalid reduction arguments: Axes contains duplicate dimension: " + std::to_string(axis);
      return false;
    }
    (*reduced)[at] = true;
  }
  return true;
}

Make Reduce(Reduction how) {
  return [how](const weft_op& op, Launch* launch, weft_error*) {
    int keep = 0;
    op.get_bool(op.attributes, "keep_dims", &keep);
    *launch = [how, keep, dtype = op.input_dtypes[0]](weft_stream* stream, const weft_call& call,
                                                      weft_error* error) {
      const weft_tensor& x = call.inputs[0];
      std::vector<bool> reduced;
      std::string wrong;
      if (!ReadAxes(call.inputs[1], x.rank, &reduced, &wrong)) {
        return Fail(error, WEFT_INVALID_ARGUMENT, wrong);
      }
      const Dims dims = DimsOf(x);
      Dims kept = dims;
      Dims out;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (reduced[i]) kept[i] = 1;
        if (!reduced[i] || keep) out.push_back(kept[i]);
      }
      const weft_tensor* const y = Output(call, 0, -1, out);
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, from = x.address, to = y->address, into = Positions(kept, dims),
                   results = y->elements] {
        ForReal(dtype, [&]<typename T>(T) {
          std::vector<T> sums(static_cast<size_t>(results), Start<T>(how));
          const T* const in = memory->At<T>(from);
          for (size_t i = 0; i < into.size(); ++i) Take(how, in[i], &sums[into[i]]);
          const T each = results == 0 ? T{1} : static_cast<T>(into.size()) / results;
          for (int64_t i = 0; i < results; ++i) {
            memory->At<T>(to)[i] = how == Reduction::kMean ? sums[i] / each : sums[i];
          }
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

}  // namespace

void AddReductions(std::vector<Kernel>* kernels) {
  const auto add = [&](const char* op, Reduction how) {
    kernels->push_back({op, {{"T", {kFloat, kDouble}}}, Reduce(how)});
  };
  add("Sum", Reduction::kSum);
  add("Mean", Reduction::kMean);
  add("Prod", Reduction::kProd);
  add("Max", Reduction::kMax);
  add("Min", Reduction::kMin);
}

}  // namespace asic
