// SPDX-License-Identifier: Apache-2.0
// Summaries of whole tensors: histograms, and the tensors themselves.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/storage/summary.h"

namespace weft::ops::io::tensor_summary {
namespace {

Status Give(KernelContext& c, StatusOr<std::string> summary) {
  WEFT_RETURN_IF_ERROR(summary.status());
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
  *output->data<std::string>() = *std::move(summary);
  return absl::OkStatus();
}

StatusOr<std::string> StringScalar(const Tensor& tensor, const char* name) {
  if (tensor.shape().IsScalar()) return tensor.scalar<std::string>();
  return InvalidArgument(name, " must be scalar, got shape ", tensor.shape().ToString());
}

class HistogramKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string tag, StringScalar(c.input(0), "tags"));
    return Give(c, storage::HistogramSummary(tag, c.input(1)));
  }
};

class TensorKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string tag, StringScalar(c.input(0), "tag"));
    WEFT_ASSIGN_OR_RETURN(const std::string metadata,
                          StringScalar(c.input(2), "serialized_summary_metadata"));
    return Give(c, storage::TensorSummary(tag, c.input(1), metadata));
  }
};

class NodeTensorKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    return Give(c, storage::NodeTensorSummary(c.name(), c.input(0)));
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("HistogramSummary")
                    .Doc("A Summary with the histogram of all values.\nInvalidArgument for NaN and "
                         "infinities.")
                    .Input("tag: string")
                    .Input("values: T")
                    .Output("summary: string")
                    .Attr("T: realnumbertype = DT_FLOAT")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf(RealNumbers{})}},
                             .factory = MakeKernel<HistogramKernel>()}));
  catalogue.Add(OpSpec("TensorSummaryV2")
                    .Doc("A Summary with the tensor, and metadata that says who shows it.\n"
                         "InvalidArgument if the metadata is no SummaryMetadata.")
                    .Input("tag: string")
                    .Input("tensor: T")
                    .Input("serialized_summary_metadata: string")
                    .Output("summary: string")
                    .Attr("T: type")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<TensorKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorSummary")
                    .Doc("A Summary with the tensor under this node's name.")
                    .Input("tensor: T")
                    .Output("summary: string")
                    .Attr("T: type")
                    .Attr("description: string = ''")
                    .Attr("labels: list(string) = []")
                    .Attr("display_name: string = ''")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<NodeTensorKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::tensor_summary
