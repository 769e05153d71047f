// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/step_host.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "proto/weft/cluster.pb.h"
#include "weft/wire/tensor_frame.h"
#include "weft/worker/step_end.h"

namespace weft::worker {

using transport::FrameHeader;
using transport::FrameKind;
using transport::Region;

namespace {

// "/job:ps/replica:0/task:0" of a device in full.
std::string TaskOf(const std::string& device) { return device.substr(0, device.find("/device:")); }

FrameHeader StepFrame(FrameKind kind, int64_t step, uint32_t graph = 0) {
  FrameHeader header;
  header.kind = kind;
  header.graph = graph;
  header.step = static_cast<uint64_t>(step);
  return header;
}

// How a step or its part ended, for a frame: as its body where the meta has not the room.
struct EndBytes {
  std::string meta;
  std::vector<Region> body;
};

EndBytes BytesOf(const step::PartReport& report) {
  constexpr size_t kMostInMeta = 32 << 10;
  EndBytes end{.meta = EncodeStepEnd(report), .body = {}};
  if (end.meta.size() <= kMostInMeta) return end;
  StatusOr<Region> region = wire::AllocateBody(end.meta.size());
  if (region.ok()) {
    std::memcpy(region->data, end.meta.data(), end.meta.size());
    end.body.push_back(*std::move(region));
    end.meta.clear();
    return end;
  }
  const Status& cause = report.status.ok() ? region.status() : report.status;
  end.meta = EncodeStepEnd(
      {.status = Status(cause.code(), cause.message().substr(0, kMostInMeta - 1024))});
  return end;
}

}  // namespace

void StepHost::Watch(int64_t step, std::shared_ptr<StepWatcher> watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.emplace(step, std::move(watcher));
}

void StepHost::Unwatch(int64_t step) {
  std::shared_ptr<StepWatcher> dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = watchers_.find(step);
  if (found == watchers_.end()) return;
  dropped = std::move(found->second);
  watchers_.erase(found);
}

void StepHost::TellWatcher(const std::string& task, int64_t step, step::PartReport report) {
  std::shared_ptr<StepWatcher> watcher;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = watchers_.find(step);
    if (found == watchers_.end()) return;
    watcher = found->second;
  }
  watcher->PartEnded(task, std::move(report));
}

void StepHost::StartRemote(const std::string& task, uint32_t graph, int64_t step, bool trace,
                           bool partition_graphs) {
  wire::StepStart start;
  start.set_trace(trace);
  start.set_partition_graphs(partition_graphs);
  plane_->Send(
      task, StepFrame(FrameKind::kStepStart, step, graph), start.SerializeAsString(), {},
      [this, task, step](const Status& sent) {
        if (sent.ok()) return;
        pool_->Schedule([this, task, step, sent] { TellWatcher(task, step, {.status = sent}); });
      });
}

void StepHost::AbortRemote(const std::string& task, int64_t step, const Status& reason) {
  // Best effort: a task that cannot be reached is reported as lost.
  EndBytes end = BytesOf({.status = reason});
  plane_->Send(task, StepFrame(FrameKind::kAbort, step), std::move(end.meta), std::move(end.body),
               nullptr);
}

Status StepHost::Push(int64_t step, const RendezvousKey& key, const Tensor& tensor, bool is_dead) {
  WEFT_ASSIGN_OR_RETURN(wire::TensorFrame frame, wire::MakeTensorFrame(step, key, tensor, is_dead));
  plane_->Send(TaskOf(key.receive_device), frame.header, std::move(frame.meta),
               std::move(frame.body), [this, step](const Status& sent) {
                 if (!sent.ok()) FailStep(step, sent);
               });
  return absl::OkStatus();
}

void StepHost::FailStep(int64_t step, const Status& why) {
  pool_->Schedule([this, step, why] { worker_->AbortStep(step, why); });
}

Region StepHost::BodyFor(const std::string& task, const FrameHeader& header, absl::string_view) {
  if (CollectiveLink::Takes(header)) return collectives_->BodyFor(task, header);
  if (MembershipLink::Takes(header)) return Region();
  const auto step = static_cast<int64_t>(header.step);
  if (header.kind == FrameKind::kTensor && worker_->IsDead(step)) return Region();
  StatusOr<Region> body = wire::AllocateBody(header.body_bytes);
  if (body.ok()) return *std::move(body);
  FailStep(step, body.status());
  return Region();
}

void StepHost::Received(const std::string& task, const FrameHeader& header, absl::string_view meta,
                        Region body) {
  if (CollectiveLink::Takes(header))
    return collectives_->Received(task, header, meta, std::move(body));
  if (MembershipLink::Takes(header)) {
    if (members_ != nullptr) members_->Received(task, meta);
    return;
  }
  const auto step = static_cast<int64_t>(header.step);
  const absl::string_view end =
      body.size > 0 ? absl::string_view(reinterpret_cast<const char*>(body.data), body.size) : meta;
  switch (header.kind) {
    case FrameKind::kStepStart:
      return StartHere(task, header, meta);
    case FrameKind::kAbort:
      return AbortHere(task, step, end);
    case FrameKind::kTensor:
      return TakeTensor(header, meta, std::move(body));
    case FrameKind::kStepDone:
      return TakeEnd(task, step, end);
    default:
      WEFT_LOG_EVERY(WARNING, absl::Seconds(10)) << "Frame of an unexpected kind from " << task
                                                 << ": " << transport::FrameKindName(header.kind);
  }
}

void StepHost::StartHere(const std::string& master, const FrameHeader& header,
                         absl::string_view meta) {
  wire::StepStart start;
  const bool parsed = start.ParseFromArray(meta.data(), static_cast<int>(meta.size()));
  TaskStep step{.graph = header.graph,
                .step = static_cast<int64_t>(header.step),
                .trace = start.trace(),
                .partition_graphs = start.partition_graphs(),
                .cancellation = std::make_shared<Cancellation>()};
  bool added = false;
  {
    // Here and not on the pool, so that an Abort right behind it finds the part.
    absl::MutexLock lock(&mutex_);
    added = parts_.try_emplace(step.step, RemotePart{master, step.cancellation}).second;
  }
  if (!added) {
    WEFT_LOG(WARNING) << "Step " << step.step << " of " << master << " runs already";
    return;
  }
  if (!parsed) {
    return EndHere(master, step.step, {.status = Internal("The start of a step is malformed")});
  }
  pool_->Schedule([this, master, step = std::move(step)]() mutable {
    const int64_t id = step.step;
    worker_->RunStep(std::move(step), [this, master, id](step::PartReport report) {
      EndHere(master, id, std::move(report));
    });
  });
}

void StepHost::EndHere(const std::string& master, int64_t step, step::PartReport report) {
  {
    absl::MutexLock lock(&mutex_);
    parts_.erase(step);
  }
  EndBytes end = BytesOf(report);
  // If it does not arrive, the master has lost this task and knows.
  plane_->Send(master, StepFrame(FrameKind::kStepDone, step), std::move(end.meta),
               std::move(end.body), nullptr);
}

void StepHost::AbortHere(const std::string& master, int64_t step, absl::string_view bytes) {
  StatusOr<step::PartReport> report = ParseStepEnd(bytes);
  const Status reason = !report.ok()          ? report.status()
                        : report->status.ok() ? Aborted("The step was aborted by ", master)
                                              : report->status;
  std::shared_ptr<Cancellation> cancellation;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = parts_.find(step);
    if (found != parts_.end() && found->second.master == master)
      cancellation = found->second.cancellation;
  }
  if (cancellation != nullptr) {
    pool_->Schedule([cancellation, reason] { cancellation->Cancel(reason); });
  } else {
    FailStep(step, reason);
  }
}

void StepHost::TakeTensor(const FrameHeader& header, absl::string_view meta, Region body) {
  const auto step = static_cast<int64_t>(header.step);
  StatusOr<wire::TensorMeta> parsed = wire::TensorMeta::Parse(meta, body.size);
  if (!parsed.ok()) return FailStep(step, parsed.status());
  const Ref<rendezvous::StepRendezvous> rendezvous = worker_->RendezvousOf(step);
  if (!rendezvous) return;  // a dead step
  rendezvous::EdgeKey key{
      .number = header.key, .frame = parsed->frame, .iteration = parsed->iteration};
  pool_->Schedule([this, rendezvous, key, meta = *std::move(parsed), body = std::move(body), step] {
    StatusOr<Tensor> tensor = wire::TensorFromBody(meta, body);
    const Status delivered =
        tensor.ok() ? rendezvous->Deliver(key, *std::move(tensor), meta.is_dead) : tensor.status();
    // A step that was aborted meanwhile refuses what comes late; that fails nothing.
    if (!delivered.ok() && rendezvous->status().ok()) FailStep(step, delivered);
  });
}

void StepHost::TakeEnd(const std::string& task, int64_t step, absl::string_view bytes) {
  StatusOr<step::PartReport> report = ParseStepEnd(bytes);
  if (!report.ok()) report = step::PartReport{.status = report.status()};
  pool_->Schedule([this, task, step, report = *std::move(report)]() mutable {
    TellWatcher(task, step, std::move(report));
  });
}

void StepHost::TaskLost(const std::string& task, const Status& why) {
  const Status lost = absl::IsAborted(why) ? why : Unavailable("Lost ", task, ": ", why.message());
  std::vector<int64_t> watched;
  std::vector<std::shared_ptr<Cancellation>> orphans;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [step, watcher] : watchers_) watched.push_back(step);
    for (const auto& [step, part] : parts_) {
      if (part.master == task) orphans.push_back(part.cancellation);
    }
  }
  pool_->Schedule([this, task, lost, watched = std::move(watched), orphans = std::move(orphans)] {
    for (int64_t step : watched) TellWatcher(task, step, {.status = lost});
    for (const auto& cancellation : orphans) cancellation->Cancel(lost);
    worker_->TaskLost(task, lost);
  });
  collectives_->TaskLost(task, lost);
  if (members_ != nullptr) members_->ConnectionLost(task);
}

}  // namespace weft::worker
