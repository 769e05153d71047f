// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/cost_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/graph/attr_value.h"
#include "weft/inspect/step_line.h"

namespace weft::inspect {
namespace {

constexpr int64_t kFirstSteps = 4;
constexpr int64_t kMostTraced = 200;
constexpr size_t kMostKinds = 64;
constexpr size_t kMostNodes = 1000000;
// Between two steps that are told: short at first, when a program still initialises.
constexpr absl::Duration kFirstPeriod = absl::Seconds(1), kLastPeriod = absl::Seconds(32);

// The same for all steps that run the same nodes, in whatever order.
uint64_t KindOf(const std::vector<executor::NodeTrace>& trace) {
  std::set<absl::string_view> seen;
  uint64_t kind = 0;
  for (const executor::NodeTrace& node : trace) {
    if (!seen.insert(node.node).second) continue;
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : node.node) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    kind += hash;
  }
  return kind;
}

double SecondsOf(const executor::NodeTrace& node) {
  return static_cast<double>(std::max<int64_t>(node.end_us - node.start_us, 0)) * 1e-6;
}

using Nodes = std::map<std::string, NodeDef>;

// The trace knows the op that was read, the graph also which of its outputs.
std::string InputName(const executor::NodeTrace& node, size_t i, const Nodes& nodes) {
  const std::string& input = node.inputs[i];
  const auto defined = nodes.find(node.node);
  if (defined == nodes.end()) return input;
  for (const std::string& written : defined->second.inputs) {
    const StatusOr<TensorName> name = ParseTensorName(written);
    if (name.ok() && name->node == input && name->port > 0)
      return absl::StrCat(input, ":", name->port);
  }
  return input;
}

// 0 where its attributes do not tell.
int64_t StateBytes(const executor::NodeTrace& node, const Nodes& nodes) {
  const auto defined = nodes.find(node.node);
  if (defined == nodes.end()) return 0;
  const bool is_variable = absl::StartsWith(node.op, "Variable") || node.op == "VarHandleOp";
  const StatusOr<PartialShape> shape = FindAttr<PartialShape>(defined->second.attrs, "shape");
  const StatusOr<DType> dtype = FindAttr<DType>(defined->second.attrs, "dtype");
  if (!is_variable || !shape.ok() || !dtype.ok() || !shape->IsFullyDefined()) return 0;
  return shape->num_elements() * static_cast<int64_t>(DTypeSize(*dtype));
}

}  // namespace

void StepKind::Add(const std::vector<executor::NodeTrace>& trace, absl::Duration step,
                   const Nodes& nodes) {
  ++steps_;
  const double seconds = absl::ToDoubleSeconds(step);
  step_seconds_ += seconds;
  least_seconds_ = least_seconds_ < 0 ? seconds : std::min(least_seconds_, seconds);
  std::map<absl::string_view, const executor::NodeTrace*> sends;
  std::map<absl::string_view, std::string> origin;  // of what was received
  for (const executor::NodeTrace& node : trace) {
    if (node.op == "_Send") sends[node.node] = &node;
  }
  for (const executor::NodeTrace& node : trace) {
    if (node.op != "_Recv") continue;
    const auto sent = sends.find(SendOf(node.node));
    if (sent == sends.end() || sent->second->inputs.empty()) continue;
    origin[node.node] = InputName(*sent->second, 0, nodes);
    LinkCost& link = links_[{sent->second->device, node.device}];
    link.transfers += 1;
    for (const executor::OutputTrace& output : node.outputs)
      link.bytes += static_cast<double>(output.bytes);
    // From when it could leave to when it was there.
    link.seconds +=
        static_cast<double>(std::max<int64_t>(node.end_us - sent->second->start_us, 0)) * 1e-6;
  }
  std::map<absl::string_view, double> of_step;
  for (const executor::NodeTrace& node : trace) {
    // Waiting is not the op's work.
    const bool is_exchange = node.op == "_Send" || origin.contains(node.node);
    if (is_exchange) continue;
    of_step[node.node] += SecondsOf(node);
    const auto [found, is_new] = ops_.try_emplace(node.node);
    if (!is_new) continue;
    order_.push_back(node.node);
    OpCost& op = found->second.op;
    op = {.name = node.node,
          .op = node.op,
          .device = node.device,
          .outputs = node.outputs,
          .state_bytes = StateBytes(node, nodes)};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto received = origin.find(node.inputs[i]);
      op.inputs.push_back(received == origin.end() ? InputName(node, i, nodes) : received->second);
    }
  }
  for (const auto& [name, taken] : of_step) {
    Times& times = ops_[std::string(name)];
    times.sum += taken;
    times.least = times.least < 0 ? taken : std::min(times.least, taken);
  }
}

StepCosts StepKind::Costs() const {
  const auto steps = static_cast<double>(std::max<int64_t>(steps_, 1));
  StepCosts costs = {
      .steps = steps_, .step_seconds = step_seconds_ / steps, .least_seconds = least_seconds_};
  for (const std::string& name : order_) {
    const Times& times = ops_.at(name);
    costs.ops.push_back(times.op);
    costs.ops.back().seconds = times.sum / steps;
    costs.ops.back().least_seconds = times.least;
  }
  for (const auto& [ends, sums] : links_) {
    costs.links.push_back({.from = ends.first,
                           .to = ends.second,
                           .transfers = sums.transfers / steps,
                           .bytes = sums.bytes / steps,
                           .seconds = sums.seconds / steps});
  }
  costs.batch = BatchOf(costs.ops);
  return costs;
}

bool ShowsSteps() {
  const char* const value = std::getenv("WEFT_SHOW_STEPS");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

CostRecorder::CostRecorder(std::string path, bool shows_steps)
    : path_(std::move(path)), shows_steps_(shows_steps), period_(kFirstPeriod / 2) {}

CostRecorder::~CostRecorder() {
  absl::MutexLock lock(&mutex_);
  if (traced_ > written_) Write();
}

bool CostRecorder::ShallShow() const { return shows_steps_ && absl::Now() - shown_ >= period_; }

bool CostRecorder::Wants() {
  absl::MutexLock lock(&mutex_);
  if (++asked_ <= kFirstSteps) return false;
  return (!path_.empty() && traced_ < kMostTraced) || ShallShow();
}

bool CostRecorder::WantsGraphs() {
  absl::MutexLock lock(&mutex_);
  if (path_.empty() || traced_ >= kMostTraced) return false;
  // Again and again, as there are several kinds of steps; rarely, as they are large.
  return (traced_ & (traced_ - 1)) == 0;
}

void CostRecorder::Add(const std::vector<executor::NodeTrace>& trace,
                       const std::vector<GraphDef>& graphs, absl::Duration step) {
  if (trace.empty()) return;
  const uint64_t kind = KindOf(trace);
  absl::MutexLock lock(&mutex_);
  if (ShallShow()) {
    shown_ = absl::Now();
    period_ = std::min(2 * period_, kLastPeriod);
    WEFT_LOG(INFO) << StepLine(trace, asked_);
  }
  if (path_.empty() || traced_ >= kMostTraced) return;
  for (const GraphDef& graph : graphs) {
    for (const NodeDef& node : graph.nodes) {
      if (nodes_.size() >= kMostNodes) break;
      NodeDef& kept = nodes_.try_emplace(node.name).first->second;
      if (!kept.name.empty()) continue;
      kept = {.name = node.name, .op = node.op, .inputs = node.inputs};
      for (const char* const name : {"shape", "dtype"}) {
        const auto attr = node.attrs.find(name);
        if (attr != node.attrs.end()) kept.attrs.insert(*attr);
      }
    }
  }
  if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) return;
  kinds_[kind].Add(trace, step, nodes_);
  ++traced_;
  // A program that is killed leaves one too.
  if (traced_ >= 2 * written_ + 4 || traced_ == kMostTraced) Write();
}

void CostRecorder::Write() {
  // Saving may take longer than all training so far, but it is not what a program does all the
  // time.
  const auto less = [](const auto& a, const auto& b) {
    return std::pair(a.second.steps() > 1, a.second.seconds()) <
           std::pair(b.second.steps() > 1, b.second.seconds());
  };
  const auto most = std::max_element(kinds_.begin(), kinds_.end(), less);
  if (most == kinds_.end()) return;
  written_ = traced_;
  const Status status = WriteFile(files_, path_, FormatCosts(most->second.Costs()));
  if (!status.ok()) WEFT_LOG(WARNING) << "No cost file was written: " << status.message();
}

std::vector<executor::NodeTrace> TracesOfFeeds(
    const std::vector<std::pair<std::string, Tensor>>& feeds) {
  std::vector<executor::NodeTrace> traces;
  for (const auto& [name, tensor] : feeds) {
    const StatusOr<TensorName> parsed = ParseTensorName(name);
    if (!parsed.ok() || !tensor.IsInitialized()) continue;
    executor::NodeTrace& trace = traces.emplace_back();
    trace.node = absl::StrCat("_arg_", parsed->node, "_", parsed->port);
    trace.op = "_Arg";
    executor::OutputTrace& output = trace.outputs.emplace_back();
    output.dtype = tensor.dtype();
    output.dims.assign(tensor.shape().dims().begin(), tensor.shape().dims().end());
    output.bytes = static_cast<int64_t>(tensor.size_bytes());
  }
  return traces;
}

std::string CostPathOfTask(const std::string& path, const std::string& job, int index) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const std::string task = absl::StrCat("-", job, "-", index);
  if (!has_ending) return path + task;
  return absl::StrCat(path.substr(0, dot), task, path.substr(dot));
}

}  // namespace weft::inspect
