// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/data_plane.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

#include "base/log.h"
#include "base/shared_memory.h"
#include "weft/transport/tcp/endpoint.h"
#include "weft/transport/ucx/endpoint.h"

namespace weft::cluster {

using transport::FrameHeader;
using transport::PeerRef;
using transport::Region;
using transport::SendDone;

DataMetrics::DataMetrics(MetricRegistry* registry)
    : frames_sent(
          registry->GetCounter("weft_data_frames_sent_total", "Frames pushed to other tasks")),
      bytes_sent(registry->GetCounter("weft_data_sent_bytes_total", "Bytes pushed to other tasks")),
      frames_received(
          registry->GetCounter("weft_data_frames_received_total", "Frames from other tasks")),
      bytes_received(
          registry->GetCounter("weft_data_received_bytes_total", "Bytes from other tasks")),
      bytes_shared(registry->GetCounter("weft_data_shared_bytes_total",
                                        "Bytes of other tasks of this host, read in place")),
      tasks_lost(registry->GetCounter("weft_tasks_lost_total",
                                      "Times that a task's last connection ended")) {}

StatusOr<std::unique_ptr<DataPlane>> DataPlane::Start(DataPlaneOptions options,
                                                      FrameReceiver* receiver, ThreadPool* pool) {
  std::unique_ptr<DataPlane> plane(new DataPlane(std::move(options), receiver, pool));
  transport::EndpointOptions endpoint;
  endpoint.task = plane->options_.task;
  endpoint.incarnation = plane->options_.incarnation;
  endpoint.token = plane->options_.token;
  endpoint.tls = plane->options_.tls;
  endpoint.dead_after = plane->options_.lost_after;
  if (plane->options_.share_memory) {
    if (const Status enabled = ProcessSharedMemory().Enable(); enabled.ok()) {
      endpoint.shared_memory = &ProcessSharedMemory();
    } else {
      WEFT_LOG(WARNING) << "Tensors for tasks of this host will be copied: " << enabled.message();
    }
  }
  WEFT_ASSIGN_OR_RETURN(plane->endpoint_,
                        plane->options_.use_ucx
                            ? transport::ucx::MakeEndpoint(endpoint, plane.get())
                            : transport::tcp::MakeEndpoint(endpoint, plane.get()));
  WEFT_ASSIGN_OR_RETURN(plane->address_, plane->endpoint_->Listen(plane->options_.bind));
  return plane;
}

DataPlane::~DataPlane() { Shutdown(); }

void DataPlane::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    shut_down_ = true;
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return dialling_ == 0; };
    mutex_.Await(absl::Condition(&idle));
  }
  if (endpoint_ != nullptr) endpoint_->Shutdown();
  std::vector<std::string> tasks;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [task, link] : links_) tasks.push_back(task);
  }
  for (const std::string& task : tasks) FailPending(task, Cancelled("The server is shutting down"));
}

void DataPlane::Know(const TaskAddress& task) {
  std::vector<PeerRef> old;
  {
    absl::MutexLock lock(&mutex_);
    Link& link = links_[task.task];
    if (link.incarnation != task.incarnation) {
      const auto is_of_it = [&](const PeerRef& peer) {
        return peer->incarnation() == task.incarnation;
      };
      const auto others = std::stable_partition(link.peers.begin(), link.peers.end(), is_of_it);
      old.assign(others, link.peers.end());
      link.peers.erase(others, link.peers.end());
    }
    link.address = task.address;
    link.incarnation = task.incarnation;
  }
  if (!old.empty()) ForgetProcess(task.task, old);
}

// Of a task that was started again: what still goes there is lost.
void DataPlane::ForgetProcess(const std::string& task, const std::vector<PeerRef>& peers) {
  const Status restarted = Aborted("Task ", task, " was started again");
  for (const PeerRef& peer : peers) peer->Close("the task was started again", restarted.code());
  FailPending(task, restarted);
  receiver_->TaskLost(task, restarted);
}

void DataPlane::SendTo(transport::Peer& peer, Pending frame) {
  if (options_.metrics != nullptr) {
    size_t bytes = frame.meta.size();
    for (const Region& region : frame.body) bytes += region.size;
    options_.metrics->frames_sent.Add();
    options_.metrics->bytes_sent.Add(static_cast<int64_t>(bytes));
  }
  peer.Send(frame.header, frame.meta, std::span<Region>(frame.body), std::move(frame.done));
}

void DataPlane::Send(const std::string& task, const FrameHeader& header, std::string meta,
                     std::vector<Region> body, SendDone done) {
  Pending frame{header, std::move(meta), std::move(body), std::move(done)};
  PeerRef peer;
  std::string dial;
  Status refused;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = links_.find(task);
    if (shut_down_) {
      refused = Cancelled("The server is shutting down");
    } else if (found == links_.end()) {
      refused = Unavailable("No way to ", task, " is known to ", options_.task);
    } else {
      Link& link = found->second;
      if (!link.peers.empty() && !link.flushing && link.pending.empty()) {
        peer = link.peers.back();
      } else if (link.peers.empty() && !link.connecting && link.address.empty()) {
        refused = Unavailable("Lost the connection to ", task);
      } else {
        link.pending.push_back(std::move(frame));
        if (link.peers.empty() && !link.connecting) {
          link.connecting = true;
          ++dialling_;
          dial = link.address;
        }
      }
    }
  }
  if (!refused.ok()) {
    if (frame.done) frame.done(refused);
  } else if (peer != nullptr) {
    SendTo(*peer, std::move(frame));
  } else if (!dial.empty()) {
    // Names are resolved on the caller's thread, which may take its time.
    pool_->Schedule([this, task, dial] { Connect(task, dial); });
  }
}

void DataPlane::Connect(const std::string& task, const std::string& address) {
  endpoint_->ConnectAsync(
      address, absl::Now() + options_.connect_timeout,
      [this, task](StatusOr<PeerRef> peer) { Connected(task, std::move(peer)); });
  absl::MutexLock lock(&mutex_);
  --dialling_;
}

void DataPlane::Connected(const std::string& task, StatusOr<PeerRef> peer) {
  Status status = peer.status();
  if (status.ok() && (*peer)->task() != task) {
    status = Unavailable("At the address of ", task, " there is ", (*peer)->name());
    (*peer)->Close("another task was expected", absl::StatusCode::kCancelled);
  }
  {
    absl::MutexLock lock(&mutex_);
    Link& link = links_[task];
    link.connecting = false;
    if (status.ok() && link.peers.empty() && !link.pending.empty()) {
      status = Unavailable("The connection to ", task, " broke at once");
    }
  }
  if (!status.ok()) {
    // Who refuses us does so the next time as well: only the rest is worth another try.
    const bool is_final = absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status);
    const std::string text = absl::StrCat("Cannot reach ", task, ": ", status.message());
    FailPending(task, absl::IsAborted(status) ? status
                      : is_final              ? InvalidArgument(text)
                                              : Unavailable(text));
  }
}

void DataPlane::FailPending(const std::string& task, const Status& why) {
  std::vector<Pending> failed;
  {
    absl::MutexLock lock(&mutex_);
    failed.swap(links_[task].pending);
  }
  for (Pending& frame : failed) {
    if (frame.done) frame.done(why);
  }
}

// Sends what waited, in order; later frames queue up behind it until nothing is left.
void DataPlane::Flush(const std::string& task) {
  while (true) {
    std::vector<Pending> batch;
    PeerRef peer;
    {
      absl::MutexLock lock(&mutex_);
      Link& link = links_[task];
      if (link.peers.empty() || link.pending.empty()) {
        link.flushing = false;
        return;
      }
      link.flushing = true;
      batch.swap(link.pending);
      peer = link.peers.back();
    }
    for (Pending& frame : batch) SendTo(*peer, std::move(frame));
  }
}

void DataPlane::PeerUp(const PeerRef& peer) {
  bool other_process = false;
  std::vector<PeerRef> old;
  {
    absl::MutexLock lock(&mutex_);
    Link& link = links_[peer->task()];
    other_process = link.incarnation != 0 && link.incarnation != peer->incarnation();
    if (other_process) old.swap(link.peers);
    link.incarnation = peer->incarnation();
    link.peers.push_back(peer);
  }
  if (other_process) ForgetProcess(peer->task(), old);
  Flush(peer->task());
}

void DataPlane::PeerDown(const PeerRef& peer, const Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    Link& link = links_[peer->task()];
    const auto found = std::find(link.peers.begin(), link.peers.end(), peer);
    if (found == link.peers.end()) return;  // replaced by a later process's
    link.peers.erase(found);
  }
  // Also where another connection to it stands: what was on its way on this one is lost.
  if (options_.metrics != nullptr) options_.metrics->tasks_lost.Add();
  receiver_->TaskLost(peer->task(), why);
}

Region DataPlane::ReceiveBuffer(const PeerRef& peer, const FrameHeader& header,
                                absl::string_view meta) {
  return receiver_->BodyFor(peer->task(), header, meta);
}

void DataPlane::FrameReceived(const PeerRef& peer, const FrameHeader& header,
                              absl::string_view meta, Region body) {
  if (options_.metrics != nullptr) {
    options_.metrics->frames_received.Add();
    options_.metrics->bytes_received.Add(static_cast<int64_t>(meta.size() + body.size));
    if (body.read_only) options_.metrics->bytes_shared.Add(static_cast<int64_t>(body.size));
  }
  receiver_->Received(peer->task(), header, meta, std::move(body));
}

}  // namespace weft::cluster
