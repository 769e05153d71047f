// SPDX-License-Identifier: Apache-2.0
// Collectives on the data connections: their messages are frames of the kind Tensor with a flag, so
// that tasks of one host lend each other what is in them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "weft/cluster/data_plane.h"
#include "weft/collective/engine.h"
#include "weft/collective/network.h"

namespace weft::worker {

// Thread-safe. The engine is told in the order in which things came from the network, on the pool;
// of small parts on the connection's own thread.
class CollectiveLink final : public collective::Network {
 public:
  // Asks a task that nothing is known of where it is; may block.
  using Find = std::function<StatusOr<cluster::TaskAddress>(const std::string& task)>;

  // `find` runs on `setup`. Pools must end before this does.
  CollectiveLink(const std::string& task, uint64_t incarnation, Find find, ThreadPool* setup,
                 ThreadPool* pool);
  // Before the first frame and the first call.
  void Attach(collective::Engine* engine, cluster::DataPlane* plane, const std::string& address);
  // Of open groups: who tells others that this task takes part in them.
  void OnBeRank(std::function<void()> be_rank) { be_rank_ = std::move(be_rank); }
  // No timer runs any more on return.
  void Stop();

  const collective::CollectiveMember& self() const override { return self_; }
  void Send(const std::string& task, collective::CollectiveMessage message,
            std::vector<Tensor> body) override;
  void Learn(const collective::CollectiveMember& member) override;
  void After(absl::Duration delay, absl::AnyInvocable<void()> what) override;
  void BeRank() override {
    if (be_rank_) pool_->Schedule(be_rank_);
  }
  void Execute(absl::AnyInvocable<void()> what) override { pool_->Schedule(std::move(what)); }

  // From the data connections, on their thread.
  static bool Takes(const transport::FrameHeader& header);
  transport::Region BodyFor(const std::string& task, const transport::FrameHeader& header);
  void Received(const std::string& task, const transport::FrameHeader& header,
                absl::string_view meta, transport::Region body);
  void TaskLost(const std::string& task, const Status& why);

 private:
  struct News {
    std::string task;
    Status lost;  // OK: a message came
    collective::CollectiveMessage message;
    Tensor body;
  };
  struct Letter {
    collective::CollectiveMessage message;
    std::vector<Tensor> body;
  };
  // On this thread if it is little and no other is telling.
  void Tell(News news, bool is_little);
  void TellAll();
  // Tells the first of the news. True if there is more; else the next one has to see to it.
  bool TellNext();
  void Post(const std::string& task, Letter letter);
  void LookUp(const std::string& task);

  collective::CollectiveMember self_;
  const Find find_;
  ThreadPool* const setup_;
  ThreadPool* const pool_;
  std::function<void()> be_rank_;
  collective::Engine* engine_ = nullptr;
  cluster::DataPlane* plane_ = nullptr;
  absl::Mutex mutex_;
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);
  // What waits until a look-up has ended.
  std::map<std::string, std::vector<Letter>> looked_up_ ABSL_GUARDED_BY(mutex_);
  std::deque<News> news_ ABSL_GUARDED_BY(mutex_);
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<TimerQueue> timers_;
};

}  // namespace weft::worker
