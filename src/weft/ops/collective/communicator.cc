// SPDX-License-Identifier: Apache-2.0
// Collectives whose group is a resource: made once by all members, with the rank that each gives.
#include <atomic>

#include "weft/kernel/resource.h"
#include "weft/ops/collective/collective_kernel.h"
#include "weft/tensor/resource_handle.h"

namespace weft::ops::collective::communicator {
namespace {

constexpr char kTypes[] = "T: {bfloat16, float, half, double, int32, int64}";
// No instance of a user's, who counts from 0.
constexpr int32_t kFirstMeeting = -1;

// One member's way into its group. Its collectives are numbered in the order of their calls, which
// must be the same at all members. Thread-safe.
class Communicator final : public Resource {
 public:
  explicit Communicator(CollectiveCall call) : call_(std::move(call)) {}
  std::string DebugString() const override {
    return absl::StrCat("communicator of rank ", call_.rank, " of ", call_.group_size, " in group ",
                        call_.group_key);
  }
  int32_t group_size() const { return call_.group_size; }
  // What the next collective is called with.
  void Fill(CollectiveCall* call) {
    call->group_key = call_.group_key;
    call->group_size = call_.group_size;
    call->rank = call_.rank;
    call->algorithm = call_.algorithm;
    call->instance_key = next_.fetch_add(1);
    if (call->timeout == absl::InfiniteDuration()) call->timeout = call_.timeout;
  }

 private:
  const CollectiveCall call_;
  std::atomic<int32_t> next_{0};
};

// Waits until all members have come.
class InitializeKernel final : public AsyncOpKernel {
 public:
  explicit InitializeKernel(CollectiveCall call) : call_(std::move(call)) {}
  void ComputeAsync(KernelContext& c, Done done) override {
    CollectiveCall call = call_;
    if (Status refused = Take(c, &call); !refused.ok()) return done(refused);
    CollectiveCall meeting = call;
    meeting.instance_key = kFirstMeeting;
    RunCollective(
        c, std::move(meeting),
        CollectiveRunner::Done(
            [&c, call = std::move(call), done = std::move(done)](StatusOr<Tensor> met) mutable {
              if (met.ok()) {
                c.SetOutput(0, Tensor::Scalar(ResourceHandle{
                                   .device = c.device().name(),
                                   .container = c.default_container(),
                                   .name = absl::StrCat("communicator of group ", call.group_key),
                                   .type_name = "Communicator",
                                   .object = MakeRef<Communicator>(call)}));
              }
              done(met.status());
            }));
  }

 private:
  static Status Take(const KernelContext& c, CollectiveCall* call) {
    WEFT_ASSIGN_OR_RETURN(call->group_key, ScalarInput(c, 0, "group_key"));
    WEFT_ASSIGN_OR_RETURN(call->rank, ScalarInput(c, 1, "rank"));
    WEFT_ASSIGN_OR_RETURN(call->group_size, ScalarInput(c, 2, "group_size"));
    call->dtype = DType::kInt32;
    WEFT_ASSIGN_OR_RETURN(call->input, Tensor::Zeros(DType::kInt32, Shape{0}));
    call->shape = call->input.shape();
    if (call->rank < 0) return InvalidArgument("rank must not be negative, got ", call->rank);
    return absl::OkStatus();
  }

  const CollectiveCall call_;
};

class WithCommunicator final : public AsyncOpKernel {
 public:
  explicit WithCommunicator(CollectiveCall call) : call_(std::move(call)) {}
  void ComputeAsync(KernelContext& c, Done done) override {
    CollectiveCall call = call_;
    TakeInput(c, 0, &call);
    if (Status refused = Take(c, &call); !refused.ok()) return done(refused);
    RunCollective(c, std::move(call), std::move(done));
  }

 private:
  static Status Take(const KernelContext& c, CollectiveCall* call) {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(1));
    auto* communicator = dynamic_cast<Communicator*>(handle->object.get());
    if (communicator == nullptr) return InvalidArgument("Input 1 must be a communicator");
    const Tensor& groups = c.input(2);
    if (groups.rank() != 2 || groups.dim(0) != 1) {
      return Unimplemented(
          "Only the group of all members is there: group_assignment of shape "
          "[1, group_size], got ",
          groups.shape().ToString());
    }
    if (groups.dim(1) != communicator->group_size()) {
      return InvalidArgument("group_assignment has ", groups.dim(1), " members, the communicator ",
                             communicator->group_size());
    }
    communicator->Fill(call);
    return absl::OkStatus();
  }

  const CollectiveCall call_;
};

// The group that device_index is in, of those that the rows of group_assignment name.
class AssignGroupKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& groups = c.input(0);
    if (!groups.shape().IsMatrix()) {
      return InvalidArgument("group_assignment must be a matrix, got shape ",
                             groups.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const int32_t device, ScalarInput(c, 1, "device_index"));
    WEFT_ASSIGN_OR_RETURN(const int32_t base, ScalarInput(c, 2, "base_key"));
    const auto* indices = groups.data<int32_t>();
    for (int64_t i = 0; i < groups.num_elements(); ++i) {
      const auto key = static_cast<int32_t>(static_cast<uint32_t>(base) +
                                            static_cast<uint32_t>(i / groups.dim(1)));
      if (key == 0) {
        return InvalidArgument("Using the reserved group_key = 0 is not allowed: group_id = ",
                               i / groups.dim(1), ", base_key = ", base);
      }
      if (indices[i] < 0 || indices[i] >= groups.num_elements()) {
        return InvalidArgument("Not all items in group_assignment ", groups.ToString(),
                               " is within [0, number of devices)");
      }
      if (indices[i] != device) continue;
      c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(groups.dim(1))));
      c.SetOutput(1, Tensor::Scalar(key));
      return absl::OkStatus();
    }
    return InvalidArgument("device_index ", device, " is not found in group_assignment ",
                           groups.ToString());
  }
};

OpSpec WithResource(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("input: T")
      .Input("communicator: resource")
      .Input("group_assignment: int32")
      .HostInput("input")
      .HostInput("communicator")
      .HostInput("group_assignment")
      .Output("data: T")
      .HostOutput("data")
      .Attr(kTypes);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec initialize("CollectiveInitializeCommunicator");
  initialize.Doc("Waits for all members of a group, each with its rank, and gives the way into it.")
      .Input("group_key: int32")
      .Input("rank: int32")
      .Input("group_size: int32")
      .HostInput("group_key")
      .HostInput("rank")
      .HostInput("group_size")
      .Output("communicator: resource")
      .HostOutput("communicator");
  AddCommonAttrs(initialize)
      .Shape(shapes::Scalar)
      .Kernel(MakeCollective<InitializeKernel>(CollectiveKind::kBarrier), KernelCost::kInline);
  catalogue.Add(FinishCollective(initialize));
  OpSpec assign("CollectiveAssignGroupV2");
  assign
      .Doc(
          "The size and the key of the group that device_index is in: row i of group_assignment "
          "names the devices of the group of key base_key + i.")
      .Input("group_assignment: int32")
      .Input("device_index: int32")
      .Input("base_key: int32")
      .HostInput("group_assignment")
      .HostInput("device_index")
      .HostInput("base_key")
      .Output("group_size: int32")
      .Output("group_key: int32")
      .HostOutput("group_size")
      .HostOutput("group_key")
      .Shape(shapes::Scalar)
      .Kernel(MakeKernel<AssignGroupKernel>(), KernelCost::kInline);
  catalogue.Add(FinishCollective(assign));
  OpSpec reduce = WithResource("CollectiveReduceV3",
                               "Gives every member of a communicator the reduction of all inputs.");
  reduce.Attr("reduction: {'Min', 'Max', 'Mul', 'Add'}")
      .Attr("timeout_seconds: float = 0")
      .Shape(shapes::SameAsInput)
      .Kernel(MakeCollective<WithCommunicator>(CollectiveKind::kReduce), KernelCost::kInline);
  catalogue.Add(FinishCollective(reduce));
  OpSpec all = WithResource("CollectiveAllToAllV3",
                            "Gives rank r of a communicator row r of every rank's input.");
  all.Attr("timeout_seconds: float = 0")
      .Shape(shapes::SameAsInput)
      .Kernel(MakeCollective<WithCommunicator>(CollectiveKind::kAllToAll), KernelCost::kInline);
  catalogue.Add(FinishCollective(all));
}

}  // namespace weft::ops::collective::communicator
