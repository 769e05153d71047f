// SPDX-License-Identifier: Apache-2.0
// One collective of one step at one task: what its own ranks give, what comes from other tasks, and
// what becomes of both.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/waits.h"
#include "weft/collective/board.h"
#include "weft/collective/network.h"
#include "weft/collective/schedule.h"
#include "weft/kernel/collective_runner.h"

namespace weft::collective {

// A rank's call, from its arrival to its end.
struct PendingCall {
  CollectiveCall what;
  CollectiveRunner::Done done;
  Cancellation::Token token = 0;
  bool is_registered = false;
  Wait wait;
  bool ended = false;  // guarded by the engine
  int64_t since = 0;   // the engine's remarks when it came
};
using CallRef = std::shared_ptr<PendingCall>;  // shared with the cancellation's callback and timers

// The ranks of a formed group, as all tasks see them alike.
struct Membership {
  std::vector<CollectiveMember> members;        // by rank
  std::vector<std::string> tasks;               // in the order of their first ranks
  std::vector<std::vector<int>> ranks_of_task;  // in order
  std::vector<std::pair<int, int>> place;       // of each rank: its task, and which rank of it
  Topology topology;
  int me = -1;  // of `tasks`; -1: this task is none of them
  uint64_t epoch = 0;
  std::shared_ptr<Boards> boards;  // shared with who looks at them; null: there are none

  static Membership Of(const CollectiveMessage& group, const std::string& own_task);
  int num_ranks() const { return static_cast<int>(members.size()); }
  int RankOf(const std::string& device) const;  // -1: none
};

// "all-reduce of the sum, float [3]": equal at all ranks, or they disagree.
std::string SignatureOf(const CollectiveCall& call);

// What arrived for an exchange.
struct Packet {
  CollectiveMessage message;
  Tensor body;                            // bytes; not initialized if there are none
  std::optional<Boards::Note> note = {};  // instead, from a board: the whole of which it is a part
};

// Not thread-safe: the engine guards what is public here, but for Do and what it says, which one
// thread at a time calls without the engine's lock.
class Exchange {
 public:
  // The instance, the n-th step that came to it, the iteration in it.
  using Key = std::tuple<int32_t, uint64_t, uint64_t, int64_t>;

  Exchange(const Key& key, std::shared_ptr<const Membership> group, ThreadPool* pool);

  // Under the engine's lock.
  // InvalidArgument if the rank has called already, or computes something else than others.
  Status AddCall(int rank, CallRef call);
  Status AddPacket(const std::string& task, Packet packet);
  // True if there is something to do now: then TakeWork, Do without the lock, TakeSends and so on.
  bool HasWork() const;
  void TakeWork();
  // True if what it needs next may be on boards: then Collect takes in what is.
  bool LooksAtBoards() const;
  Status Collect();
  // What to look for there, without the lock.
  struct Lookout {
    std::shared_ptr<Boards> boards;  // shared with the group
    NoteKey key;
    std::vector<int> tasks;
    uint32_t turn = 0;
    bool IsAllThere() const;
  };
  Lookout Missing() const;
  // Other tasks must tell this one by a message that it should look; until TakeWork.
  void Sleep();
  // Tasks, as bits, that do not look any more.
  uint64_t Sleepers() const;
  struct Send {
    int peer = 0;
    CollectiveMessage message;
    std::vector<Tensor> body;
  };
  std::vector<Send> TakeSends() { return std::exchange(sends_, {}); }
  bool is_finished() const { return stage_ == Stage::kFinished; }
  const std::vector<CallRef>& calls() const { return calls_; }
  // Of the call of calls()[i]; once it is finished.
  const Tensor& result(size_t i) const { return results_[i]; }
  // "waiting for ..." of the ranks or tasks that it needs next.
  std::string Awaited() const;
  // Tasks of which something came, while no rank here has come.
  std::vector<std::string> CameAlone() const;
  const Key& key() const { return key_; }

  // Without it.
  Status Do();

  bool busy = false;  // somebody is between TakeWork and the end of Do
  bool crowded =
      false;  // others run beside the ranks: messages wake sooner than who looks comes back
  std::atomic<bool> over{false};  // ended or given up
  std::atomic<uint32_t> turn{0};  // changes with what came by messages, and with TakeWork

 private:
  enum class Stage : uint8_t { kGathering, kExchanging, kFinished };
  using Inbox = std::map<std::pair<int, int>, Packet>;  // by round and task

  Status Check(const std::string& signature, const std::string& who);
  bool AllHere() const { return num_calls_ == static_cast<int>(calls_.size()); }
  // A broadcast's root is known where it is here, or when the first packet has come.
  int Root() const;
  int RoundLabel(size_t round) const;
  bool RoundIsIn() const;

  Status Begin();
  Status LayOut();
  StatusOr<std::vector<Tensor>> LocalInputs() const;
  Status FillChunks(const std::vector<Tensor>& inputs);
  Tensor RowsFor(const Tensor& input, int task) const;
  void MakeSends();
  NoteKey NoteKeyOf(size_t round) const;
  uint64_t Pin();
  StatusOr<Tensor> Part(const Packet& packet, const Transfer& transfer, int chunk) const;
  Status TakeRound();
  StatusOr<Tensor> RoomFor(int chunk);
  StatusOr<Tensor> ReduceTerms(int chunk, absl::Span<const Tensor> terms, bool is_whole);
  bool IsLastReduction() const;
  Status Finish();
  Status FinishReduce();
  StatusOr<Tensor> Assemble(int local) const;

  const Key key_;
  const std::shared_ptr<const Membership> group_;  // shared: exchanges outlive the group
  ThreadPool* const pool_;
  std::vector<CallRef> calls_;  // by place in the task's ranks
  int num_calls_ = 0;
  std::string signature_;
  std::string signature_of_;  // who said so
  Inbox inbox_;
  Inbox taken_;  // of the round that is being done

  Stage stage_ = Stage::kGathering;
  CollectiveKind kind_ = CollectiveKind::kReduce;
  int root_ = -1;
  Schedule schedule_;
  size_t round_ = 0;
  bool on_boards_ = false;
  bool asleep_ = false;
  DType dtype_ = DType::kInvalid;
  Shape shape_;           // of each rank's input
  int64_t elements_ = 0;  // in it
  int64_t row_ = 0;       // elements that one rank has for another, or gets
  std::vector<int64_t> chunk_elements_;
  std::vector<Tensor> chunks_;  // flat; those that are here
  Tensor out_;                  // of an all-reduce in chunks, which are then parts of it
  std::vector<Send> sends_;
  std::vector<Tensor> results_;
};

}  // namespace weft::collective
