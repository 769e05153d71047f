// SPDX-License-Identifier: Apache-2.0
// This task's data connections to the others: made when first needed, made again when they broke.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/metrics.h"
#include "base/status.h"
#include "base/threads.h"
#include "weft/transport/endpoint.h"

namespace weft::cluster {

// How a task is reached: "/job:ps/replica:0/task:0", "host:port", the number of its process.
struct TaskAddress {
  std::string task;
  std::string address;
  uint64_t incarnation = 0;
};

// Who is told. Calls come from the IO thread, one at a time, and must not block.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  // Where the body goes; an empty region drops the frame.
  virtual transport::Region BodyFor(const std::string& task, const transport::FrameHeader& header,
                                    absl::string_view meta) = 0;
  virtual void Received(const std::string& task, const transport::FrameHeader& header,
                        absl::string_view meta, transport::Region body) = 0;
  // A connection to the task is gone, or the task is another process now.
  virtual void TaskLost(const std::string& task, const Status& why) = 0;
};

// What is counted of data connections.
struct DataMetrics {
  explicit DataMetrics(MetricRegistry* registry);
  Counter& frames_sent;
  Counter& bytes_sent;
  Counter& frames_received;
  Counter& bytes_received;
  Counter& bytes_shared;
  Counter& tasks_lost;
};

struct DataPlaneOptions {
  std::string task;  // this one
  uint64_t incarnation = 0;
  std::string token;          // tasks of one cluster share it
  std::string bind;           // "host:port"
  std::optional<JobTls> tls;  // of the job that all tasks are of; none: in the clear
  bool use_ucx = false;       // else TCP
  // Tensors for tasks on this host are read in place from memory that both map.
  bool share_memory = true;
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration lost_after = absl::Seconds(10);  // a task that is silent; infinite: never
  DataMetrics* metrics = nullptr;                 // may be null
};

// Thread-safe.
class DataPlane final : private transport::FrameHandler {
 public:
  // Listens when it returns. `receiver` and `pool` must outlive it.
  static StatusOr<std::unique_ptr<DataPlane>> Start(DataPlaneOptions options,
                                                    FrameReceiver* receiver, ThreadPool* pool);
  ~DataPlane() override;

  // "host:port" as bound.
  const std::string& address() const { return address_; }

  // Tells how to reach a task. A connection to an earlier process of it is closed.
  void Know(const TaskAddress& task);

  // Sends a frame, connecting first where needed. Frames to one task keep their order. `done` gets
  // Unavailable if the task cannot be reached, Aborted if it is another process now; it may run
  // before this returns and must not block.
  void Send(const std::string& task, const transport::FrameHeader& header, std::string meta,
            std::vector<transport::Region> body, transport::SendDone done);

  // Closes every connection; no call of the receiver comes after. Once.
  void Shutdown();

 private:
  struct Pending {
    transport::FrameHeader header;
    std::string meta;
    std::vector<transport::Region> body;
    transport::SendDone done;
  };
  struct Link {
    std::string address;
    uint64_t incarnation = 0;
    std::vector<transport::PeerRef> peers;  // the last is used
    bool connecting = false;
    bool flushing = false;
    std::vector<Pending> pending;  // while there is no peer, or others wait
  };

  DataPlane(DataPlaneOptions options, FrameReceiver* receiver, ThreadPool* pool)
      : options_(std::move(options)), receiver_(receiver), pool_(pool) {}
  void Connect(const std::string& task, const std::string& address);
  void Connected(const std::string& task, StatusOr<transport::PeerRef> peer);
  void Flush(const std::string& task);
  void ForgetProcess(const std::string& task, const std::vector<transport::PeerRef>& peers);
  void FailPending(const std::string& task, const Status& why);
  void SendTo(transport::Peer& peer, Pending frame);

  void PeerUp(const transport::PeerRef& peer) override;
  transport::Region ReceiveBuffer(const transport::PeerRef& peer,
                                  const transport::FrameHeader& header,
                                  absl::string_view meta) override;
  void FrameReceived(const transport::PeerRef& peer, const transport::FrameHeader& header,
                     absl::string_view meta, transport::Region body) override;
  void PeerDown(const transport::PeerRef& peer, const Status& why) override;

  const DataPlaneOptions options_;
  FrameReceiver* const receiver_;
  ThreadPool* const pool_;
  std::string address_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  int dialling_ ABSL_GUARDED_BY(mutex_) = 0;  // Connect calls on the pool
  std::map<std::string, Link, std::less<>> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::cluster
