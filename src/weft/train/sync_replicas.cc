// SPDX-License-Identifier: Apache-2.0
#include "weft/train/sync_replicas.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/log.h"

namespace weft::train {
namespace {

// Of a worker's queue. One that was away for more steps gives a gradient that is too old, and then
// takes what came meanwhile.
constexpr int32_t kMostTokens = 8;

// Runs the chief's apply node again and again beside the training thread.
class ChiefRunner final : public Hook {
 public:
  explicit ChiefRunner(std::string apply) : apply_(std::move(apply)) {}
  ~ChiefRunner() override { Stop(); }

  Status AfterCreate(session::Session& session, int64_t) override {
    Stop();
    SetStopping(false);
    thread_ = std::make_unique<Thread>("weft-sync-chief", [this, &session] { Loop(session); });
    return absl::OkStatus();
  }
  void AfterClose() override { Stop(); }
  Status End(session::Session&, int64_t) override {
    SetStopping(true);
    return absl::OkStatus();
  }

 private:
  // A failure here is mostly one that the training thread's step meets too: it makes a new session
  // and calls AfterCreate. Where it does not, trying again is what gets that step its token.
  void Loop(session::Session& session) {
    bool told = false;
    bool stopping = false;
    while (!stopping) {
      const Status status = session.Run({}, {}, {apply_}, nullptr);
      absl::MutexLock lock(&mutex_);
      // A closed session is no news: the training thread closed it, or knows.
      const bool closed = status.code() == absl::StatusCode::kCancelled ||
                          status.code() == absl::StatusCode::kFailedPrecondition;
      if (!status.ok() && !closed && !stopping_ && !told) {
        WEFT_LOG(WARNING) << "Applying gradients stopped: " << status.message();
        told = true;
      }
      if (!status.ok())
        mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Milliseconds(200));
      stopping = stopping_;
    }
  }
  void SetStopping(bool stopping) {
    absl::MutexLock lock(&mutex_);
    stopping_ = stopping;
  }
  void Stop() {
    SetStopping(true);
    thread_.reset();
  }

  const std::string apply_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

// Each row once, in order: accumulators merge sorted lists.
TensorGradient::Slices SortedRows(GraphBuilder& b, const TensorGradient::Slices& slices) {
  const Endpoint indices = b.Op("Cast", {slices.indices}, {{"DstT", DType::kInt64}});
  Node* unique = b.AddNode("Unique", {indices});
  const Endpoint rows = {unique, 0};
  const Endpoint count = b.Op("Size", {rows});
  const Endpoint values = b.Op("UnsortedSegmentSum", {slices.values, Endpoint{unique, 1}, count});
  const Endpoint order = {b.AddNode("TopKV2", {b.Op("Neg", {rows}), count}), 1};
  const Endpoint axis = b.Scalar<int32_t>(0);
  return {.values = b.Op("GatherV2", {values, order, axis}),
          .indices = b.Op("GatherV2", {rows, order, axis})};
}

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
  if (pair.gradient.slices) {
    const TensorGradient::Slices rows = SortedRows(builder, *pair.gradient.slices);
    builder.set_device(variable.device);
    const Endpoint accumulator =
        builder.Op("SparseConditionalAccumulator", {},
                   {{"dtype", variable.dtype}, {"shape", variable.shape}, {"shared_name", name}});
    sent->push_back(builder.AddNode("SparseAccumulatorApplyGradient",
                                    {accumulator, local_step, rows.indices, rows.values,
                                     builder.Constant(Tensor::FromSpan<int64_t>(Shape{0}, {}))},
                                    {{"has_known_shape", false}}));
    Node* taken = builder.AddNode("SparseAccumulatorTakeGradient", {accumulator, required},
                                  {{"dtype", variable.dtype}});
    chief_init_.push_back(builder.AddNode("AccumulatorSetGlobalStep", {accumulator, step}));
    mean.slices = TensorGradient::Slices{
        .values = {taken, 1}, .indices = {taken, 0}, .dense_shape = {taken, 2}};
  } else {
    builder.set_device(variable.device);
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
  const Variable global_step = program.GlobalStep();
  const std::string worker = builder.device();
  builder.set_device(global_step.device);
  WEFT_ASSIGN_OR_RETURN(Node * update, optimizer_->ApplyGradients(program, means, &global_step));
  const std::vector<Node*> outer = With(builder, {update});
  const Endpoint step_now =
      builder.Op("ReadVariableOp", {global_step.handle}, {{"dtype", DType::kInt64}});
  builder.set_control_inputs(outer);
  std::vector<Node*> given;
  for (const Endpoint queue : queues_) {
    // A worker that is lost does not fill memory.
    const Endpoint has_room = builder.Op(
        "Less", {builder.Op("QueueSizeV2", {queue}), builder.Scalar<int32_t>(kMostTokens)});
    const Endpoint count =
        builder.Op("Reshape", {builder.Op("Cast", {has_room}, {{"DstT", DType::kInt32}}),
                               builder.Constant(Tensor::Vector<int32_t>({1}))});
    const Endpoint token = builder.Op("Fill", {count, step_now});
    given.push_back(builder.AddNode("QueueEnqueueManyV2", {queue, std::vector<Endpoint>{token}}));
    // A chief that was lost may have taken gradients without handing out tokens: let those who
    // wait go on.
    chief_resume_.push_back(
        builder.AddNode("QueueEnqueueV2", {queue, std::vector<Endpoint>{global_step.value}}));
  }
  const std::vector<Node*> before = With(builder, given);
  apply_ = builder.AddNode("NoOp", {}, {}, "chief_apply");
  builder.set_control_inputs(before);
  builder.set_device(worker);
  return builder.status();
}

StatusOr<Node*> SyncReplicas::Minimize(Program& program, Endpoint loss) {
  if (to_aggregate_ < 1 || total_ < to_aggregate_) {
    return InvalidArgument("Synchronous training needs 1 <= to_aggregate <= total, got ",
                           to_aggregate_, " and ", total_);
  }
  if (worker_ < 0 || worker_ >= total_) {
    return InvalidArgument("Worker ", worker_, " is none of the ", total_,
                           " that train synchronously");
  }
  GraphBuilder& builder = program.builder();
  const Variable global_step = program.GlobalStep();
  WEFT_ASSIGN_OR_RETURN(std::vector<GradientAndVariable> pairs,
                        optimizer_->ComputeGradients(program, loss));
  builder.PushName("sync_replicas");
  // A worker that starts again joins the step that is under way: what it sends is of use, and
  // brings the tokens that it and the others wait for.
  const Initializer step_now = [&](GraphBuilder&, DType, const Shape&) {
    return global_step.value;
  };
  const Variable local_step = program.AddVariable("local_step", DType::kInt64, Shape(), step_now,
                                                  {.local = true, .device = builder.device()});
  const std::string worker = builder.device();
  builder.set_device(global_step.device);
  for (int other = 0; other < total_; ++other) {
    queues_.push_back(builder.Op("FIFOQueueV2", {},
                                 {{"component_types", AttrValue::TypeList{DType::kInt64}},
                                  {"shapes", AttrValue::ShapeList{Shape()}},
                                  {"shared_name", absl::StrCat("sync_token_q_", other)}}));
  }
  builder.set_device(worker);
  std::vector<Node*> sent;
  std::vector<GradientAndVariable> means;
  for (const GradientAndVariable& pair : pairs) {
    means.push_back({Accumulate(program, pair, local_step.value, &sent), pair.variable});
  }
  std::vector<Node*> outer = With(builder, sent);
  builder.set_device(global_step.device);
  // The newest token counts: those of steps that this worker was too late for are of no use. Nobody
  // else takes from its queue.
  const Endpoint queue = queues_[static_cast<size_t>(worker_)];
  const Endpoint waiting =
      builder.Op("Maximum", {builder.Op("QueueSizeV2", {queue}), builder.Scalar<int32_t>(1)});
  const Endpoint tokens = builder.Op("QueueDequeueManyV2", {queue, waiting},
                                     {{"component_types", AttrValue::TypeList{DType::kInt64}}});
  const Endpoint token = builder.Op("Max", {tokens, builder.Scalar<int32_t>(0)});
  builder.set_device(worker);
  builder.set_control_inputs(outer);
  Node* train = builder.AddNode("AssignVariableOp", {local_step.handle, token},
                                {{"dtype", DType::kInt64}}, "train");
  builder.PopName();
  WEFT_RETURN_IF_ERROR(BuildChief(program, means));
  WEFT_RETURN_IF_ERROR(builder.status());
  return train;
}

std::unique_ptr<Hook> SyncReplicas::ChiefHook() const {
  return std::make_unique<ChiefRunner>(apply_ != nullptr ? apply_->name() : "");
}

}  // namespace weft::train
