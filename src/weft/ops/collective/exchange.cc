// SPDX-License-Identifier: Apache-2.0
// Collectives that move values and compute nothing: gather, broadcast, all-to-all.
#include "weft/ops/collective/collective_kernel.h"

namespace weft::ops::collective::exchange {
namespace {

constexpr char kNumbers[] = "T: {bfloat16, float, half, double, int32, int64}";
constexpr char kGathered[] = "T: {float, half, double, int32, int64}";
constexpr char kBroadcast[] = "T: {bool, float, half, double, int32, int64}";

// Receives what another member sends, of a shape that it knows.
class ReceiveKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(CollectiveCall call, CallOfNode(c, CollectiveKind::kBroadcast));
    call.dtype = c.output_dtype(0);
    const bool has_inputs = c.num_inputs() > 0;
    if (!has_inputs) {
      WEFT_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
      WEFT_ASSIGN_OR_RETURN(call.shape, shape.ToShape());
    }
    return std::make_unique<ReceiveKernel>(std::move(call), has_inputs);
  }
  ReceiveKernel(CollectiveCall call, bool has_inputs)
      : call_(std::move(call)), has_inputs_(has_inputs) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    CollectiveCall call = call_;
    if (has_inputs_) {
      Status refused = TakeKeys(c, 0, &call);
      if (refused.ok()) refused = TakeShape(c.input(3), &call.shape);
      if (!refused.ok()) return done(refused);
    }
    RunCollective(c, std::move(call), std::move(done));
  }

 private:
  static Status TakeShape(const Tensor& sizes, Shape* shape) {
    if (sizes.rank() != 1) {
      return InvalidArgument("shape must be a vector, got shape ", sizes.shape().ToString());
    }
    Dims dims;
    for (int64_t i = 0; i < sizes.num_elements(); ++i) {
      dims.push_back(sizes.dtype() == DType::kInt64 ? sizes.data<int64_t>()[i]
                                                    : sizes.data<int32_t>()[i]);
    }
    WEFT_ASSIGN_OR_RETURN(*shape, Shape::Make(dims));
    return absl::OkStatus();
  }

  const CollectiveCall call_;
  const bool has_inputs_;
};

Status ShapeOfAttr(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ShapeOfInput3(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(3));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Dimension 0 is as often there as the group has members.
Status GatheredShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (shape.known_rank()) shape.SetDim(0, -1);
  c.set_output(0, shape);
  return absl::OkStatus();
}

OpSpec WithInput(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("input: T").HostInput("input").Output("data: T").HostOutput("data");
  return spec;
}

OpSpec WithoutInput(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Output("data: T").HostOutput("data");
  return spec;
}

void AddGather(Catalogue& catalogue) {
  OpSpec v1 = WithInput("CollectiveGather",
                        "Gives every member all members' inputs, in order of rank along dimension "
                        "0; keys are attributes.");
  AddCommonAttrs(AddStaticKeys(v1.Attr(kGathered)).Attr("shape: shape"))
      .Shape(ShapeOfAttr)
      .Kernel(MakeCollective<KeyedByAttributes>(CollectiveKind::kGather), KernelCost::kInline);
  catalogue.Add(FinishCollective(v1));
  OpSpec v2 = WithInput("CollectiveGatherV2",
                        "Gives every member all members' inputs, in order of rank along dimension "
                        "0; keys are inputs.");
  AddCommonAttrs(AddOrderingTokens(AddKeyInputs(v2)).Attr(kGathered))
      .Attr("is_stateless: bool = false")
      .Attr("Nordering_token: int >= 0 = 0")
      .Shape(GatheredShape)
      .Kernel(MakeCollective<KeyedByInputs>(CollectiveKind::kGather), KernelCost::kInline);
  catalogue.Add(FinishCollective(v2));
}

void AddBroadcast(Catalogue& catalogue) {
  OpSpec send = WithInput("CollectiveBcastSend",
                          "Gives its input to every member of the group; keys are attributes.");
  AddCommonAttrs(AddStaticKeys(send.Attr(kBroadcast)).Attr("shape: shape"))
      .Shape(ShapeOfAttr)
      .Kernel(MakeCollective<KeyedByAttributes>(CollectiveKind::kBroadcast), KernelCost::kInline);
  catalogue.Add(FinishCollective(send));
  OpSpec receive = WithoutInput("CollectiveBcastRecv",
                                "Gets what one member of the group gives; keys are attributes.");
  AddCommonAttrs(AddStaticKeys(receive.Attr(kBroadcast)).Attr("shape: shape"))
      .Shape(ShapeOfAttr)
      .Kernel(MakeKernel<ReceiveKernel>(), KernelCost::kInline);
  catalogue.Add(FinishCollective(receive));
  OpSpec send_v2 = WithInput("CollectiveBcastSendV2",
                             "Gives its input to every member of the group; keys are inputs.");
  AddCommonAttrs(AddKeyInputs(send_v2).Attr(kBroadcast))
      .Shape(shapes::SameAsInput)
      .Kernel(MakeCollective<KeyedByInputs>(CollectiveKind::kBroadcast), KernelCost::kInline);
  catalogue.Add(FinishCollective(send_v2));
  OpSpec receive_v2 = WithoutInput("CollectiveBcastRecvV2",
                                   "Gets what one member of the group gives; keys are inputs.");
  AddCommonAttrs(AddKeyInputs(receive_v2)
                     .Input("shape: Tshape")
                     .HostInput("shape")
                     .Attr(kBroadcast)
                     .Attr("Tshape: {int32, int64} = int32"))
      .Shape(ShapeOfInput3)
      .Kernel(MakeKernel<ReceiveKernel>(), KernelCost::kInline);
  catalogue.Add(FinishCollective(receive_v2));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddGather(catalogue);
  AddBroadcast(catalogue);
  OpSpec all = WithInput("CollectiveAllToAllV2",
                         "Gives member r row r of every member's input, in order of rank.");
  AddCommonAttrs(AddOrderingTokens(AddKeyInputs(all)).Attr(kNumbers))
      .Attr("is_stateless: bool = false")
      .Attr("Nordering_token: int >= 0 = 0")
      .Shape(shapes::SameAsInput)
      .Kernel(MakeCollective<KeyedByInputs>(CollectiveKind::kAllToAll), KernelCost::kInline);
  catalogue.Add(FinishCollective(all));
}

}  // namespace weft::ops::collective::exchange
