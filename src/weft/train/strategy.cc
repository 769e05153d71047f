// SPDX-License-Identifier: Apache-2.0
#include "weft/train/strategy.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/log.h"

namespace weft::train {
namespace {

constexpr char kMirrored[] = "mirrored";
constexpr char kMultiWorker[] = "multi_worker";
constexpr char kParameterServer[] = "parameter_server";
// Steps and worker's number in one: who is ahead, and of these the one with the lowest number.
constexpr int64_t kMostWorkers = int64_t{1} << 20;

std::string Said(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Of WEFT_ELASTIC, "2:4".
StatusOr<int> FewestSaid() {
  const std::string said = Said("WEFT_ELASTIC");
  if (said.empty()) return 0;
  const std::vector<std::string> words = absl::StrSplit(said, ':');
  int fewest = 0;
  int most = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &fewest) ||
      !absl::SimpleAtoi(words[1], &most) || fewest < 1 || fewest > most) {
    return InvalidArgument("WEFT_ELASTIC is '", said, "', expected FEWEST:MOST, such as 2:4");
  }
  return fewest;
}

// Before the first step, and after each failure: the ranks meet, and all get the variables of the
// one that is ahead. After each step: whether others wait to come in.
class Meet final : public Hook {
 public:
  // `last` is a node that all ranks come to at the end; empty where there are no others.
  Meet(const Task& task, std::string form, std::string sync, std::string last)
      : task_(task), form_(std::move(form)), sync_(std::move(sync)), last_(std::move(last)) {}

  Status AfterCreate(session::Session& session, int64_t) override { return MeetIn(session); }
  Status AfterRun(const StepContext& step) override {
    if (form_.empty() || !task_.group_changed ||
        !task_.group_changed(CollectiveOptions().group_key)) {
      return absl::OkStatus();
    }
    // The others' next step ends, because the group is over, and they come too.
    return MeetIn(*step.session);
  }

  // Nobody leaves while another may still need what it sends, or its variables.
  Status End(session::Session& session, int64_t) override {
    if (last_.empty()) return absl::OkStatus();
    Status status;
    for (int tries = 0; tries < kMostTries; ++tries) {
      if (tries > 0) status = MeetIn(session);
      if (status.ok()) status = session.Run({}, {}, {last_}, nullptr);
      if (!IsLostPeer(status)) return status;
    }
    WEFT_LOG(WARNING) << "The end of the other workers is not known: " << status.message();
    return absl::OkStatus();
  }

 private:
  static constexpr int kMostTries = 10;

  Status MeetIn(session::Session& session) const {
    if (!form_.empty()) {
      std::vector<Tensor> members;
      WEFT_RETURN_IF_ERROR(session.Run({}, {form_}, {}, &members));
      WEFT_LOG(INFO) << "Workers that train together: "
                     << absl::StrJoin(members[0].span<int64_t>(), ", ");
    }
    return session.Run({}, {}, {sync_}, nullptr);
  }

  const Task task_;
  const std::string form_, sync_, last_;
};

// Of its variable's shape, also where the graph does not tell. Rows that are not there are zero.
Endpoint WholeGradient(GraphBuilder& b, const GradientAndVariable& pair) {
  if (!pair.gradient.slices) {
    if (b.ShapeOf(pair.gradient.dense).ToShape().ok()) return pair.gradient.dense;
    return b.Op("EnsureShape", {pair.gradient.dense},
                {{"shape", PartialShape(pair.variable.shape)}});
  }
  const TensorGradient::Slices& slices = *pair.gradient.slices;
  const Endpoint rows = b.Scalar<int64_t>(pair.variable.shape.dim(0));
  const absl::Span<const int64_t> dims = pair.variable.shape.dims();
  const Endpoint whole = b.Op("UnsortedSegmentSum", {slices.values, slices.indices, rows});
  return b.Op(
      "Reshape",
      {whole, b.Constant(Tensor::FromSpan<int64_t>({static_cast<int64_t>(dims.size())}, dims))});
}

bool CanTravel(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kHalf:
    case DType::kBfloat16:
    case DType::kInt32:
    case DType::kInt64:
      return true;
    default:
      return false;
  }
}

}  // namespace

StatusOr<std::unique_ptr<Strategy>> Strategy::Make(const Task& task, StrategyOptions options) {
  if (options.kind == "auto") {
    options.kind = Said("WEFT_STRATEGY");
    if (options.kind.empty() || options.kind == "auto") {
      options.kind = task.num_ps > 0        ? kParameterServer
                     : task.num_workers > 1 ? kMultiWorker
                                            : kMirrored;
    }
  }
  if (options.kind != kMirrored && options.kind != kMultiWorker &&
      options.kind != kParameterServer) {
    return InvalidArgument("There is no strategy '", options.kind,
                           "', expected mirrored, multi_worker or parameter_server");
  }
  if (options.kind == kParameterServer && task.distributed && task.num_ps == 0) {
    return InvalidArgument("Strategy parameter_server needs parameter servers, the job has none");
  }
  if (options.kind == kMirrored && task.num_workers > 1) {
    return InvalidArgument("Strategy mirrored is of one worker, the job has ", task.num_workers,
                           ": multi_worker trains them together");
  }
  if (options.devices < 1) return InvalidArgument("A task has a device at least");
  if (options.kind == kMultiWorker && options.fewest == 0) {
    WEFT_ASSIGN_OR_RETURN(options.fewest, FewestSaid());
  }
  if (options.fewest > task.num_workers) {
    return InvalidArgument("At least ", options.fewest, " workers shall train, and the job has ",
                           task.num_workers);
  }
  return std::unique_ptr<Strategy>(new Strategy(task, std::move(options)));
}

std::vector<int> Strategy::replicas() const {
  std::vector<int> numbers;
  const int first = options_.kind == kMirrored ? 0 : task_.worker * options_.devices;
  for (int i = 0; i < options_.devices; ++i) numbers.push_back(first + i);
  return numbers;
}

int Strategy::num_replicas() const { return task_.num_workers * options_.devices; }

std::string Strategy::DeviceOf(int local) const {
  if (options_.devices == 1) return task_.Device();
  return absl::StrCat(task_.Device(), "/device:CPU:", local);
}

StatusOr<std::vector<Strategy::Replica>> Strategy::BuildReplicas(Program& program,
                                                                 const Model& model) {
  GraphBuilder& b = program.builder();
  std::vector<Replica> out;
  for (int local = 0; local < options_.devices; ++local) {
    const size_t known = program.variables().size();
    b.set_device(DeviceOf(local));
    // The first has the names that a program of one replica has, also in checkpoints.
    if (local > 0) b.PushName(absl::StrCat("replica_", local));
    WEFT_ASSIGN_OR_RETURN(const Endpoint loss, model(program, replicas()[local]));
    std::vector<train::Variable> own;
    for (size_t i = known; i < program.variables().size(); ++i) {
      if (program.variables()[i].trainable) own.push_back(program.variables()[i]);
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<GradientAndVariable> gradients,
                          optimizer_->ComputeGradients(program, loss, own));
    if (local > 0) b.PopName();
    if (!out.empty() && gradients.size() != out[0].gradients.size()) {
      return InvalidArgument("Replica ", local, " of the model has ", gradients.size(),
                             " gradients, the first has ", out[0].gradients.size());
    }
    out.push_back({loss, std::move(gradients)});
  }
  b.set_device(DeviceOf(0));
  return out;
}

Endpoint Strategy::MeanOf(GraphBuilder& b, std::vector<Endpoint> values) const {
  if (values.size() == 1) return values[0];
  const DType dtype = values[0].node->output_type(values[0].port).dtype;
  const Endpoint count =
      b.Op("Cast", {b.Scalar<float>(static_cast<float>(values.size()))}, {{"DstT", dtype}});
  return b.Op("RealDiv", {b.Op("AddN", {values}), count});
}

// First among this task's replicas, in memory, then among tasks.
StatusOr<std::vector<GradientAndVariable>> Strategy::Averaged(
    Program& program, const std::vector<Replica>& replicas) {
  GraphBuilder& b = program.builder();
  std::vector<Endpoint> means;
  for (size_t i = 0; i < replicas[0].gradients.size(); ++i) {
    std::vector<Endpoint> values;
    for (const Replica& replica : replicas)
      values.push_back(WholeGradient(b, replica.gradients[i]));
    means.push_back(MeanOf(b, std::move(values)));
  }
  std::vector<Endpoint> losses;
  for (const Replica& replica : replicas) losses.push_back(replica.loss);
  loss_ = MeanOf(b, std::move(losses));
  if (has_peers()) {
    means = collectives_->AllReduceInBuckets(means, Reduction::kMean, options_.bucket_bytes,
                                             "gradients");
    loss_ = collectives_->AllReduce(loss_, Reduction::kMean, "loss");
  }
  WEFT_RETURN_IF_ERROR(b.status());
  std::vector<GradientAndVariable> out;
  for (const Replica& replica : replicas) {
    for (size_t i = 0; i < means.size(); ++i) {
      out.push_back({.gradient = {.dense = means[i], .slices = {}},
                     .variable = replica.gradients[i].variable});
    }
  }
  return out;
}

StatusOr<Node*> Strategy::Minimize(Program& program, std::unique_ptr<Optimizer> optimizer,
                                   const Model& model) {
  if (optimizer_ != nullptr) return FailedPrecondition("A strategy is for one program");
  optimizer_ = std::move(optimizer);
  GraphBuilder& b = program.builder();
  if (options_.kind == kParameterServer) {
    program.set_placement(task_.Placement());
    b.set_device(task_.Device());
    WEFT_ASSIGN_OR_RETURN(loss_, model(program, task_.worker));
    return optimizer_->Minimize(program, loss_);
  }
  collectives_ = std::make_unique<Collectives>(
      b, CollectiveOptions{.size = options_.fewest > 0 ? 0 : task_.num_workers,
                           .algorithm = options_.algorithm,
                           .wire = options_.wire});
  b.set_device(DeviceOf(0));
  const train::Variable step = program.GlobalStep();
  WEFT_ASSIGN_OR_RETURN(const std::vector<Replica> replicas, BuildReplicas(program, model));
  WEFT_ASSIGN_OR_RETURN(const std::vector<GradientAndVariable> averaged,
                        Averaged(program, replicas));
  // A step that a failure cuts off changes no variable: all gradients come before the first update.
  std::vector<Node*> all = {loss_.node};
  for (const GradientAndVariable& pair : averaged) all.push_back(pair.gradient.dense.node);
  std::sort(all.begin(), all.end(),
            [](const Node* x, const Node* y) { return x->name() < y->name(); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::vector<Node*> outer = b.control_inputs();
  b.set_control_inputs(std::move(all));
  StatusOr<Node*> train = optimizer_->ApplyGradients(program, averaged, &step);
  b.set_control_inputs(outer);
  WEFT_RETURN_IF_ERROR(train.status());
  WEFT_RETURN_IF_ERROR(BuildSync(program));
  return *train;
}

// Who is ahead gives the others all variables; within the task, the first replica.
Status Strategy::BuildSync(Program& program) {
  GraphBuilder& b = program.builder();
  b.PushName("sync");
  const Endpoint number = b.Scalar<int64_t>(kMostWorkers - 1 - task_.worker);
  if (has_peers() && options_.fewest > 0) {
    form_ = NameOf(collectives_->Form(options_.fewest, b.Scalar<int64_t>(task_.worker), "form"));
  }
  Endpoint is_ahead = b.Constant(Tensor::Scalar(true));
  if (has_peers()) {
    const Endpoint own =
        b.Op("AddV2",
             {b.Op("Mul", {program.GlobalStep().value, b.Scalar<int64_t>(kMostWorkers)}), number});
    is_ahead = b.Op("Equal", {own, collectives_->AllReduce(own, Reduction::kMax, "ahead")});
  }
  std::vector<Node*> assigned;
  std::map<std::string, Endpoint> given;  // of the first replica, by name
  for (const train::Variable& variable : program.variables()) {
    if (variable.local) continue;
    std::string name = variable.name;
    for (int i = 1; i < options_.devices; ++i) {
      const std::string prefix = absl::StrCat("replica_", i, "/");
      if (name.rfind(prefix, 0) == 0) name = name.substr(prefix.size());
    }
    const bool is_copy = name != variable.name;
    Endpoint& value = given[name];
    if (!is_copy) {
      value = variable.value;
      if (has_peers() && !CanTravel(variable.dtype)) {
        return InvalidArgument("Variable '", variable.name, "' of type ", DTypeName(variable.dtype),
                               " cannot be the same on all workers");
      }
      if (has_peers()) value = collectives_->Broadcast(value, is_ahead, variable.name);
    }
    if (!value || (!is_copy && !has_peers())) continue;
    if (!variable.device.empty()) b.set_device(variable.device);
    assigned.push_back(b.AddNode("AssignVariableOp", {variable.handle, value}));
    b.set_device(DeviceOf(0));
  }
  WEFT_RETURN_IF_ERROR(b.status());
  sync_ = program.Group(assigned, "all")->name();
  if (has_peers()) {
    Node* const last = collectives_->Barrier("end");
    if (last != nullptr) last_ = last->name();
  }
  b.PopName();
  return b.status();
}

StatusOr<std::unique_ptr<MonitoredSession>> Strategy::NewSession(Program& program,
                                                                 TrainingOptions options) {
  const bool has_own_variables = options_.kind != kParameterServer;
  options.make_session = [task = task_] { return task.NewSession(); };
  // Each task begins its own variables; the checkpoint is the first one's to write, and to read:
  // who has read it is ahead.
  const bool writes = has_own_variables ? task_.worker == 0 : task_.is_chief;
  options.is_chief = has_own_variables || task_.is_chief;
  options.check_chief = [task = task_] { return task.CheckChief(); };
  if (!writes) {
    options.checkpoint_folder.clear();
    options.chief_only_hooks.clear();
    options.summary_folder.clear();
    options.log_step_count_steps = 0;
  }
  if (has_own_variables && !sync_.empty()) {
    hooks_.push_back(std::make_unique<Meet>(task_, form_, sync_, last_));
    // Before other hooks see variables.
    options.hooks.insert(options.hooks.begin(), hooks_.back().get());
  }
  return MonitoredSession::CreateTraining(program, options);
}

}  // namespace weft::train
