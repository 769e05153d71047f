// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/collective/collective_kernel.h"

#include <utility>

namespace weft::ops::collective {
namespace {

StatusOr<ReductionOp> ReductionOf(const std::string& name) {
  if (name == "Add" || name == "sum") return ReductionOp::kSum;
  if (name == "Mul" || name == "prod") return ReductionOp::kProduct;
  if (name == "Min" || name == "min") return ReductionOp::kMin;
  if (name == "Max" || name == "max") return ReductionOp::kMax;
  return InvalidArgument("Unknown reduction: ", name);
}

}  // namespace

StatusOr<CollectiveCall> CallOfNode(KernelConstruction& c, CollectiveKind kind) {
  CollectiveCall call;
  call.kind = kind;
  call.node = c.name();
  call.algorithm = c.AttrOr<std::string>("communication_hint", "auto");
  const auto seconds = c.AttrOr<float>("timeout_seconds", 0);
  if (seconds > 0) call.timeout = absl::Seconds(seconds);
  for (const char* attr : {"merge_op", "reduction"}) {
    const auto name = c.AttrOr<std::string>(attr, "");
    if (name.empty()) continue;
    WEFT_ASSIGN_OR_RETURN(call.reduction, ReductionOf(name));
  }
  call.mean = c.AttrOr<std::string>("final_op", "Id") == "Div";
  call.group_key = static_cast<int32_t>(c.AttrOr<int64_t>("group_key", 0));
  call.group_size = static_cast<int32_t>(c.AttrOr<int64_t>("group_size", 0));
  call.instance_key = static_cast<int32_t>(c.AttrOr<int64_t>("instance_key", 0));
  return call;
}

StatusOr<int32_t> ScalarInput(const KernelContext& c, int input, absl::string_view what) {
  const Tensor& value = c.input(input);
  if (value.dtype() != DType::kInt32 || value.num_elements() != 1 || value.rank() != 0) {
    return InvalidArgument("Unexpected dimensions on input ", what, ", got ",
                           value.shape().ToString());
  }
  return value.scalar<int32_t>();
}

Status TakeKeys(const KernelContext& c, int first, CollectiveCall* call) {
  WEFT_ASSIGN_OR_RETURN(call->group_size, ScalarInput(c, first, "group_size"));
  WEFT_ASSIGN_OR_RETURN(call->group_key, ScalarInput(c, first + 1, "group_key"));
  WEFT_ASSIGN_OR_RETURN(call->instance_key, ScalarInput(c, first + 2, "instance_key"));
  return absl::OkStatus();
}

void TakeInput(const KernelContext& c, int input, CollectiveCall* call) {
  call->input = c.input(input);
  call->dtype = call->input.dtype();
  call->shape = call->input.shape();
}

void RunCollective(KernelContext& c, CollectiveCall call, CollectiveRunner::Done done) {
  const StepEnvironment& environment = c.environment();
  CollectiveRunner* const runner = CollectivesOf(&c.device());
  if (runner == nullptr) {
    return done(FailedPrecondition("Nothing here leads to other members of a group"));
  }
  call.device = c.device().name();
  call.session = environment.session == nullptr ? nullptr : environment.session->resources;
  call.step_id = c.step_id();
  call.frame = c.frame();
  call.iteration = c.iteration();
  call.cancellation = &c.cancellation();
  call.waits = environment.waits;
  runner->Run(std::move(call), std::move(done));
}

void RunCollective(KernelContext& c, CollectiveCall call, OpKernel::Done done) {
  RunCollective(
      c, std::move(call),
      CollectiveRunner::Done([&c, done = std::move(done)](StatusOr<Tensor> result) mutable {
        if (result.ok()) c.SetOutput(0, *result);
        done(result.status());
      }));
}

void KeyedByAttributes::ComputeAsync(KernelContext& c, Done done) {
  CollectiveCall call = call_;
  TakeInput(c, 0, &call);
  RunCollective(c, std::move(call), std::move(done));
}

void KeyedByInputs::ComputeAsync(KernelContext& c, Done done) {
  CollectiveCall call = call_;
  TakeInput(c, 0, &call);
  if (Status refused = TakeKeys(c, 1, &call); !refused.ok()) return done(refused);
  RunCollective(c, std::move(call), std::move(done));
}

OpSpec& AddStaticKeys(OpSpec& spec) {
  return spec.Attr("group_size: int").Attr("group_key: int").Attr("instance_key: int");
}

OpSpec& AddKeyInputs(OpSpec& spec) {
  return spec.Input("group_size: int32")
      .Input("group_key: int32")
      .Input("instance_key: int32")
      .HostInput("group_size")
      .HostInput("group_key")
      .HostInput("instance_key");
}

OpSpec& AddOrderingTokens(OpSpec& spec) {
  return spec.Input("ordering_token: Nordering_token * resource").HostInput("ordering_token");
}

OpSpec& AddCommonAttrs(OpSpec& spec) {
  return spec.Attr("communication_hint: string = 'auto'").Attr("timeout_seconds: float = 0");
}

OpSpec& FinishCollective(OpSpec& spec) {
  return spec.Stateful().DistributedCommunication().AnyDevice().NoGradient();
}

}  // namespace weft::ops::collective
