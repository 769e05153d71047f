// SPDX-License-Identifier: Apache-2.0
// What debuggers put into graphs: tensors pass, and nobody is told of them here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::debug {
namespace {

using Summarized = TypeList<float, double, Half, Bfloat16, bool, int8_t, int16_t, int32_t, int64_t,
                            uint8_t, uint16_t, uint32_t, uint64_t>;

class PassKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

class PassReferenceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(c.input_variable(0).status());
    c.SetOutputVariable(0, c.binding().input_values[0]->variable);
    return absl::OkStatus();
  }
};

class NanCountKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    int64_t count = 0;
    VisitDType(c.input(0).dtype(), Summarized(), [&]<typename T>() {
      for (const T value : c.input(0).span<T>()) {
        count += std::isnan(static_cast<double>(value)) ? 1 : 0;
      }
    });
    c.SetOutput(0, Tensor::Vector<int64_t>({count}));
    return absl::OkStatus();
  }
};

// Counts of kinds of values, then least, most, mean and variance of the finite ones, then type,
// rank and sizes.
class NumericSummaryKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return std::make_unique<NumericSummaryKernel>(c.AttrOr("lower_bound", -kInfinity),
                                                  c.AttrOr("upper_bound", kInfinity));
  }
  NumericSummaryKernel(float lower, float upper) : lower_(lower), upper_(upper) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    std::vector<double> values;
    VisitDType(input.dtype(), Summarized(), [&]<typename T>() {
      for (const T value : input.span<T>()) values.push_back(static_cast<double>(value));
    });
    std::vector<double> summary = Summarize(values);
    summary.push_back(static_cast<double>(input.dtype()));
    summary.push_back(input.rank());
    for (const int64_t size : input.shape().dims()) summary.push_back(static_cast<double>(size));
    c.SetOutput(0, Tensor::FromSpan<double>(Shape{static_cast<int64_t>(summary.size())}, summary));
    return absl::OkStatus();
  }

 private:
  std::vector<double> Summarize(const std::vector<double>& values) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double nan = 0, low = 0, negative = 0, zero = 0, positive = 0, high = 0;
    double least = kInfinity, most = -kInfinity, sum = 0, count = 0;
    for (const double x : values) {
      if (std::isnan(x)) {
        ++nan;
        continue;
      }
      if (std::isfinite(x)) {
        least = std::min(least, x);
        most = std::max(most, x);
        sum += x;
        ++count;
      }
      if (x <= lower_) {
        ++low;
      } else if (x >= upper_) {
        ++high;
      } else if (x < 0) {
        ++negative;
      } else if (x > 0) {
        ++positive;
      } else {
        ++zero;
      }
    }
    const double mean = count > 0 ? sum / count : std::nan("");
    double variance = 0;
    for (const double x : values) {
      if (std::isfinite(x)) variance += (x - mean) * (x - mean);
    }
    variance = count > 0 ? variance / count : std::nan("");
    return {1,        static_cast<double>(values.size()),
            nan,      low,
            negative, zero,
            positive, high,
            least,    most,
            mean,     variance};
  }

  const double lower_;
  const double upper_;
};

Status CountsShape(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

OpSpec Watch(const char* name, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation).Input("input: T").Attr("T: type").NoGradient();
  return spec;
}

void Pass(Catalogue& catalogue, OpSpec spec) {
  catalogue.Add(std::move(spec.Output("output: T")
                              .Shape(shapes::SameAsInput)
                              .Kernel(MakeKernel<PassKernel>(), KernelCost::kInline)));
}

// The attributes that say where debuggers of old listen.
void AddListeners(OpSpec& spec) {
  spec.Attr("device_name: string = ''")
      .Attr("tensor_name: string = ''")
      .Attr("debug_urls: list(string) = []");
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kPasses[] = "Returns the input; where debug_urls name listeners, none is told.";
  OpSpec first = Watch("DebugIdentity", kPasses);
  AddListeners(first);
  Pass(catalogue, std::move(first.AllowsUninitializedInput().Attr("gated_grpc: bool = false")));
  Pass(catalogue, std::move(Watch("DebugIdentityV2", kPasses)
                                .Stateful()
                                .Attr("tfdbg_context_id: string = ''")
                                .Attr("op_name: string = ''")
                                .Attr("output_slot: int = -1")
                                .Attr("tensor_debug_mode: int = -1")
                                .Attr("debug_urls: list(string) = []")
                                .Attr("circular_buffer_size: int = 1000")
                                .Attr("tfdbg_run_id: string = ''")));
  OpSpec third = Watch("DebugIdentityV3", kPasses);
  third.Stateful().AllowsUninitializedInput();
  AddListeners(third);
  Pass(catalogue, std::move(third.Attr("io_of_node: string = ''")
                                .Attr("is_input: bool = false")
                                .Attr("io_index: int = -1")
                                .Attr("gated_grpc: bool = false")));
  for (const char* name : {"Copy", "CopyHost"}) {
    Pass(catalogue, std::move(Watch(name, "Returns the input.")
                                  .AllowsUninitializedInput()
                                  .Attr("tensor_name: string = ''")
                                  .Attr("debug_ops_spec: list(string) = []")));
  }
  catalogue.Add(std::move(OpSpec("DebugGradientRefIdentity")
                              .Doc("Returns the same reference; marks a gradient for debuggers.")
                              .Input("input: Ref(T)")
                              .Output("output: Ref(T)")
                              .Attr("T: type")
                              .AllowsUninitializedInput()
                              .Shape(shapes::SameAsInput)
                              .NoGradient()
                              .Kernel(MakeKernel<PassReferenceKernel>(), KernelCost::kInline)));
  OpSpec count = Watch("DebugNanCount", "How many elements are NaN.");
  AddListeners(count);
  catalogue.Add(std::move(count.AllowsUninitializedInput()
                              .Attr("gated_grpc: bool = false")
                              .Output("output: int64")
                              .Shape(CountsShape)
                              .Kernel({.types = {{"T", DTypesOf(Summarized())}},
                                       .factory = MakeKernel<NanCountKernel>()})));
  OpSpec summary = Watch("DebugNumericSummary",
                         "A vector of: 1, the number of elements, how many are NaN, at most "
                         "lower_bound, negative, zero, positive, at least upper_bound; least, "
                         "most, mean and variance of the finite ones; type, rank and sizes.");
  AddListeners(summary);
  catalogue.Add(std::move(summary.AllowsUninitializedInput()
                              .Attr("lower_bound: float = -inf")
                              .Attr("upper_bound: float = inf")
                              .Attr("mute_if_healthy: bool = false")
                              .Attr("gated_grpc: bool = false")
                              .Output("output: double")
                              .Shape(CountsShape)
                              .Kernel({.types = {{"T", DTypesOf(Summarized())}},
                                       .factory = MakeKernel<NumericSummaryKernel>()})));
}

}  // namespace weft::ops::control::debug
