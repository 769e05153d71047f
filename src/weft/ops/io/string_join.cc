// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::string_join {
namespace {

class StringJoinKernel final : public OpKernel {
 public:
  explicit StringJoinKernel(std::string separator) : separator_(std::move(separator)) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<StringJoinKernel>(c.AttrOr<std::string>("separator", ""));
  }

  Status Compute(KernelContext& c) override {
    Shape shape;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Shape& own = c.input(i).shape();
      if (own.IsScalar()) continue;
      if (!shape.IsScalar() && !(shape == own)) {
        return InvalidArgument("Input shapes do not match: ", shape.ToString(), " and ",
                               own.ToString());
      }
      shape = own;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    for (int64_t e = 0; e < shape.num_elements(); ++e) {
      std::string& joined = out->data<std::string>()[e];
      joined.clear();
      for (int i = 0; i < c.num_inputs(); ++i) {
        if (i > 0) joined += separator_;
        joined += c.input(i).data<std::string>()[c.input(i).rank() == 0 ? 0 : e];
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::string separator_;
};

// Scalars go with any shape; the others must agree.
Status JoinShape(ShapeContext& c) {
  PartialShape merged;
  bool all_scalars = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).known_rank()) all_scalars = false;
    if (c.input(i).rank() <= 0) continue;
    all_scalars = false;
    WEFT_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  c.set_output(0, all_scalars ? PartialShape(Shape()) : merged);
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("StringJoin")
                    .Doc("Joins strings element-wise, with a separator between inputs.\n"
                         "inputs: of one shape, or scalars.")
                    .Input("inputs: N * string")
                    .Output("output: string")
                    .Attr("N: int >= 0")
                    .Attr("separator: string = ''")
                    .Shape(JoinShape)
                    .NoGradient()
                    .Kernel(MakeKernel<StringJoinKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::string_join
