// SPDX-License-Identifier: Apache-2.0
// Numbers to the range that they lie in.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::bucketize {
namespace {

using Types = TypeList<int32_t, int64_t, float, double>;

class BucketizeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(AttrValue::FloatList boundaries,
                          c.Attr<AttrValue::FloatList>("boundaries"));
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
      return InvalidArgument("Expected sorted boundaries");
    }
    return std::make_unique<BucketizeKernel>(
        std::vector<float>(boundaries.begin(), boundaries.end()));
  }
  explicit BucketizeKernel(std::vector<float> boundaries) : boundaries_(std::move(boundaries)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    VisitDType(in.dtype(), Types(), [&]<typename T>() {
      using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (int64_t i = 0; i < in.num_elements(); ++i) {
        const Number number = static_cast<Number>(in.data<T>()[i]);
        const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), number);
        out->data<int32_t>()[i] = static_cast<int32_t>(above - boundaries_.begin());
      }
    });
    return absl::OkStatus();
  }

 private:
  const std::vector<float> boundaries_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Bucketize")
          .Doc("How many of the sorted boundaries each number reaches: 0 below the first, "
               "as many as there are from the last on.\nInvalidArgument if they are not "
               "sorted.")
          .Input("input: T")
          .Output("output: int32")
          .Attr("T: {int32, int64, float, double}")
          .Attr("boundaries: list(float)")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel({.types = {{"T", DTypesOf(Types())}}, .factory = MakeKernel<BucketizeKernel>()}));
}

}  // namespace weft::ops::math::bucketize
