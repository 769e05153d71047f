// SPDX-License-Identifier: Apache-2.0
#include "weft/train/sync_replicas.h"

#include <atomic>
#include <utility>

#include "base/log.h"

namespace weft::train {
namespace {

// Runs the chief's apply node again and again beside the training thread.
class ChiefRunner final : public Hook {
 public:
  explicit ChiefRunner(std::string apply) : apply_(std::move(apply)) {}
  ~ChiefRunner() override { Stop(); }

  Status AfterCreate(session::Session& session, int64_t) override {
    Stop();
    stopping_ = false;
    thread_ = std::make_unique<Thread>("weft-sync-chief", [this, &session] { Loop(session); });
    return absl::OkStatus();
  }
  void AfterClose() override { Stop(); }
  Status End(session::Session&, int64_t) override {
    stopping_ = true;
    return absl::OkStatus();
  }

 private:
  void Loop(session::Session& session) {
    while (!stopping_) {
      const Status status = session.Run({}, {}, {apply_}, nullptr);
      if (status.ok()) continue;
      // A lost peer ends the training thread's step too, which makes a new session and calls AfterCreate.
      if (!stopping_ && status.code() != absl::StatusCode::kCancelled) {
        WEFT_LOG(WARNING) << "Applying gradients stopped: " << status.message();
      }
      return;
    }
  }
  void Stop() {
    stopping_ = true;
    thread_.reset();
  }

  const std::string apply_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Thread> thread_;
};

std::vector<Node*> With(GraphBuilder& builder, std::vector<Node*> controls) {
  std::vector<Node*> outer = builder.control_inputs();
  builder.set_control_inputs(std::move(controls));
  return outer;
}

}  // namespace

TensorGradient SyncReplicas::Accumulate(Program& program, const GradientAndVariable& pair,
                                        Endpoint local_step, std::vector<Node*>* sent) {
  GraphBuilder& builder = program.builder();
  const Variable& variable = pair.variable;
  const std::string name = absl::StrCat(variable.name, "/grad_accum");
  const std::string worker = builder.device();
  const Endpoint required = builder.Scalar<int32_t>(to_aggregate_);
  const Endpoint step = program.GlobalStep().value;
  TensorGradient mean;
  builder.set_device(variable.device);
  if (pair.gradient.slices) {
    const Endpoint accumulator =
        builder.Op("SparseConditionalAccumulator", {},
                   {{"dtype", variable.dtype}, {"shape", variable.shape}, {"shared_name", name}});
    const Endpoint indices = builder.Op("Cast", {pair.gradient.slices->indices}, {{"DstT", DType::kInt64}});
    sent->push_back(builder.AddNode(
        "SparseAccumulatorApplyGradient",
        {accumulator, local_step, indices, pair.gradient.slices->values,
         builder.Constant(Tensor::FromSpan<int64_t>(Shape{0}, {}))},
        {{"has_known_shape", false}}));
    Node* taken = builder.AddNode("SparseAccumulatorTakeGradient", {accumulator, required},
                                  {{"dtype", variable.dtype}});
    chief_init_.push_back(builder.AddNode("AccumulatorSetGlobalStep", {accumulator, step}));
    mean.slices = TensorGradient::Slices{
        .values = {taken, 1}, .indices = {taken, 0}, .dense_shape = {taken, 2}};
  } else {
    const Endpoint accumulator =
        builder.Op("ResourceConditionalAccumulator", {},
                   {{"dtype", variable.dtype}, {"shape", variable.shape}, {"shared_name", name}});
    sent->push_back(builder.AddNode("ResourceAccumulatorApplyGradient",
                                    {accumulator, local_step, pair.gradient.dense}));
    mean.dense = builder.Op("ResourceAccumulatorTakeGradient", {accumulator, required},
                            {{"dtype", variable.dtype}});
    chief_init_.push_back(builder.AddNode("ResourceAccumulatorSetGlobalStep", {accumulator, step}));
  }
  builder.set_device(worker);
  return mean;
}

Status SyncReplicas::BuildChief(Program& program, const std::vector<GradientAndVariable>& means) {
  GraphBuilder& builder = program.builder();
  const Variable& global_step = program.GlobalStep();
  const std::string worker = builder.device();
  builder.set_device(global_step.device);
  WEFT_ASSIGN_OR_RETURN(Node * update, optimizer_->ApplyGradients(program, means, &global_step));
  const std::vector<Node*> outer = With(builder, {update});
  const Endpoint step_now =
      builder.Op("ReadVariableOp", {global_step.handle}, {{"dtype", DType::kInt64}});
  builder.set_control_inputs(outer);
  const Endpoint count = builder.Constant(Tensor::Vector<int32_t>({total_}));
  const Endpoint tokens = builder.Op("Fill", {count, step_now});
  apply_ = builder.AddNode("QueueEnqueueManyV2", {queue_, std::vector<Endpoint>{tokens}}, {}, "chief_apply");
  // The first tokens let every worker start.
  const Endpoint first = builder.Op("Fill", {count, global_step.value});
  chief_init_.push_back(builder.AddNode("QueueEnqueueManyV2", {queue_, std::vector<Endpoint>{first}}));
  builder.set_device(worker);
  return builder.status();
}

StatusOr<Node*> SyncReplicas::Minimize(Program& program, Endpoint loss) {
  if (to_aggregate_ < 1 || total_ < to_aggregate_) {
    return InvalidArgument("Synchronous training needs 1 <= to_aggregate <= total, got ", to_aggregate_,
                           " and ", total_);
  }
  GraphBuilder& builder = program.builder();
  const Variable global_step = program.GlobalStep();
  WEFT_ASSIGN_OR_RETURN(std::vector<GradientAndVariable> pairs,
                        optimizer_->ComputeGradients(program, loss));
  builder.PushName("sync_replicas");
  const Variable local_step =
      program.AddVariable("local_step", DType::kInt64, Shape(), Zeros(), {.local = true, .device = builder.device()});
  const std::string worker = builder.device();
  builder.set_device(global_step.device);
  queue_ = builder.Op("FIFOQueueV2", {},
                      {{"component_types", AttrValue::TypeList{DType::kInt64}},
                       {"shapes", AttrValue::ShapeList{Shape()}},
                       {"shared_name", "sync_token_q"}});
  builder.set_device(worker);
  std::vector<Node*> sent;
  std::vector<GradientAndVariable> means;
  for (const GradientAndVariable& pair : pairs) {
    means.push_back({Accumulate(program, pair, local_step.value, &sent), pair.variable});
  }
  std::vector<Node*> outer = With(builder, sent);
  builder.set_device(global_step.device);
  const Endpoint token =
      builder.Op("QueueDequeueV2", {queue_}, {{"component_types", AttrValue::TypeList{DType::kInt64}}});
  builder.set_device(worker);
  builder.set_control_inputs(outer);
  Node* train = builder.AddNode("AssignVariableOp", {local_step.handle, token}, {{"dtype", DType::kInt64}},
                                "train");
  builder.PopName();
  WEFT_RETURN_IF_ERROR(BuildChief(program, means));
  WEFT_RETURN_IF_ERROR(builder.status());
  return train;
}

std::unique_ptr<Hook> SyncReplicas::ChiefHook() const {
  return std::make_unique<ChiefRunner>(apply_ != nullptr ? apply_->name() : "");
}

}  // namespace weft::train
