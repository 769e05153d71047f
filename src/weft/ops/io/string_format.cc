// SPDX-License-Identifier: Apache-2.0
// Texts with tensors put in: what tf.print and tf.strings.format write.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/summarize_kernel.h"

namespace weft::ops::io::string_format {
namespace {

class FormatKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto text = c.AttrOr<std::string>("template", "%s");
    const auto placeholder = c.AttrOr<std::string>("placeholder", "%s");
    std::vector<std::string> parts = {text};
    if (!placeholder.empty()) parts = absl::StrSplit(text, placeholder);
    if (static_cast<int>(parts.size()) != c.num_inputs() + 1) {
      return InvalidArgument("num placeholders in template and num inputs must match: ",
                             parts.size() - 1, " vs. ", c.num_inputs());
    }
    return std::make_unique<FormatKernel>(std::move(parts), c.AttrOr<int64_t>("summarize", 3));
  }
  FormatKernel(std::vector<std::string> parts, int64_t ends)
      : parts_(std::move(parts)), ends_(ends) {}

  Status Compute(KernelContext& c) override {
    std::string text = parts_[0];
    for (int i = 0; i < c.num_inputs(); ++i) {
      absl::StrAppend(&text, control::SummarizeEnds(c.input(i), ends_), parts_[i + 1]);
    }
    c.SetOutput(0, Tensor::Scalar<std::string>(std::move(text)));
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> parts_;
  const int64_t ends_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("StringFormat")
          .Doc("The text `template` with the inputs' values where `placeholder` stands.\n"
               "Of each dimension the first and last `summarize` values, all if it is negative. "
               "InvalidArgument unless there is one placeholder for each input.")
          .Input("inputs: T")
          .Output("output: string")
          .Attr("T: list(type) >= 0")
          .Attr("template: string = '%s'")
          .Attr("placeholder: string = '%s'")
          .Attr("summarize: int = 3")
          .Shape(shapes::Scalar)
          .NoGradient()
          .Kernel(MakeKernel<FormatKernel>()));
}

}  // namespace weft::ops::io::string_format
