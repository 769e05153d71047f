// SPDX-License-Identifier: Apache-2.0
// Summaries of numbers, and joining summaries: serialized Summary messages as string scalars.
#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/storage/summary.h"

namespace weft::ops::io::scalar_summary {
namespace {

class ScalarSummaryKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& tags = c.input(0);
    const Tensor& values = c.input(1);
    if (tags.shape() != values.shape()) {
      return InvalidArgument("tags and values are not the same shape: ", tags.shape().ToString(),
                             " != ", values.shape().ToString());
    }
    std::vector<std::string> parts;
    for (int64_t i = 0; i < tags.num_elements(); ++i) {
      float value = 0;
      VisitDType(values.dtype(), RealNumbers(),
                 [&]<typename T>() { value = static_cast<float>(values.data<T>()[i]); });
      parts.push_back(storage::ScalarSummary(tags.data<std::string>()[i], value));
    }
    WEFT_ASSIGN_OR_RETURN(std::string merged, storage::MergeSummaries(parts));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    *out->data<std::string>() = std::move(merged);
    return absl::OkStatus();
  }
};

class MergeSummaryKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    std::vector<std::string> parts;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const auto strings = c.input(i).span<std::string>();
      parts.insert(parts.end(), strings.begin(), strings.end());
    }
    WEFT_ASSIGN_OR_RETURN(std::string merged, storage::MergeSummaries(parts));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    *out->data<std::string>() = std::move(merged);
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ScalarSummary")
                    .Doc("Gives a Summary with one value a tag.\ntags, values: of one shape.")
                    .Input("tags: string")
                    .Input("values: T")
                    .Output("summary: string")
                    .Attr("T: realnumbertype")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf(RealNumbers())}},
                             .factory = MakeKernel<ScalarSummaryKernel>(),
                             .cost = KernelCost::kInline}));
  catalogue.Add(
      OpSpec("MergeSummary")
          .Doc("Joins Summaries into one. InvalidArgument if two have a value of the same tag.")
          .Input("inputs: N * string")
          .Output("summary: string")
          .Attr("N: int >= 1")
          .Shape(shapes::Scalar)
          .NoGradient()
          .Kernel(MakeKernel<MergeSummaryKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::scalar_summary
