// SPDX-License-Identifier: Apache-2.0
// The older ops between the devices of one task, which TensorFlow has for GPUs only.
#include "absl/hash/hash.h"

#include "weft/collective/reduce.h"
#include "weft/ops/collective/collective_kernel.h"
#include "weft/ops/fingerprint.h"

namespace weft::ops::collective::nccl {
namespace {

constexpr char kTypes[] = "T: {half, float, double, int32, int64}";
constexpr char kReductions[] = "reduction: {'min', 'max', 'prod', 'sum'}";

StatusOr<std::unique_ptr<OpKernel>> MakeAllReduce(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(CollectiveCall call, CallOfNode(c, CollectiveKind::kReduce));
  WEFT_ASSIGN_OR_RETURN(const int64_t devices, c.Attr<int64_t>("num_devices"));
  WEFT_ASSIGN_OR_RETURN(const std::string name, c.Attr<std::string>("shared_name"));
  call.is_local = true;
  call.group_size = static_cast<int32_t>(devices);
  // A key of its own, below those that users count upwards.
  call.group_key = static_cast<int32_t>(Fingerprint64(name) | 0x80000000u);
  return std::make_unique<KeyedByAttributes>(std::move(call));
}

// All inputs have come to the device of the op.
class ReduceKernel final : public OpKernel {
 public:
  explicit ReduceKernel(ReductionOp op) : op_(op) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const CollectiveCall call, CallOfNode(c, CollectiveKind::kReduce));
    return std::make_unique<ReduceKernel>(call.reduction);
  }
  Status Compute(KernelContext& c) override {
    std::vector<Tensor> terms;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (c.input(i).shape() != c.input(0).shape()) {
        return InvalidArgument("Inputs must have one shape: ", c.input(0).shape().ToString(),
                               " and ", c.input(i).shape().ToString());
      }
      terms.push_back(c.input(i));
    }
    WEFT_ASSIGN_OR_RETURN(
        Tensor reduced,
        ::weft::collective::Reduce(op_, absl::MakeConstSpan(terms), &c.device().threads()));
    c.SetOutput(0, std::move(reduced));
    return absl::OkStatus();
  }

 private:
  const ReductionOp op_;
};

class BroadcastKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("NcclAllReduce")
                    .Doc("Gives each of `num_devices` ops of one `shared_name`, on devices of one "
                         "task, the reduction of their inputs.")
                    .Input("input: T")
                    .HostInput("input")
                    .Output("data: T")
                    .HostOutput("data")
                    .Attr(kReductions)
                    .Attr(kTypes)
                    .Attr("num_devices: int")
                    .Attr("shared_name: string")
                    .Stateful()
                    .AnyDevice()
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeAllReduce, KernelCost::kInline));
  catalogue.Add(OpSpec("NcclReduce")
                    .Doc("The reduction of the inputs, which lie on devices of one task.")
                    .Input("input: num_devices * T")
                    .HostInput("input")
                    .Output("data: T")
                    .HostOutput("data")
                    .Attr(kReductions)
                    .Attr(kTypes)
                    .Attr("num_devices: int >= 1")
                    .Stateful()
                    .AnyDevice()
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<ReduceKernel>(), KernelCost::kParallel));
  catalogue.Add(OpSpec("NcclBroadcast")
                    .Doc("Its input, for readers on other devices of the task.")
                    .Input("input: T")
                    .HostInput("input")
                    .Output("output: T")
                    .HostOutput("output")
                    .Attr(kTypes)
                    .Attr("shape: shape")
                    .Stateful()
                    .AnyDevice()
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<BroadcastKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::collective::nccl
