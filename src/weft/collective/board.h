// SPDX-License-Identifier: Apache-2.0
// Small parts of an exchange between tasks of one host, without a message: each task pins notes to
// a board of its own in shared memory, and the others of its group look there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

#include "base/shared_memory.h"
#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::collective {

inline constexpr int64_t kMostBytesOfNote = int64_t{1} << 20;
inline constexpr size_t kMostSignatureOfNote = 192;
inline constexpr int kMostTasksOfBoards = 64;
inline constexpr int kNotesOfBoard = 8;

struct BoardLayout;

// The memory that one task writes for one forming of a group. Only its owner writes there.
class Board {
 public:
  // Of this process. Unavailable where the system has no such memory.
  static StatusOr<std::shared_ptr<Board>> Make();
  // What `offer` of another process is. Unavailable if it cannot be reached from here,
  // InvalidArgument for an offer that is none.
  static StatusOr<std::shared_ptr<Board>> Open(absl::string_view offer);

  // How other processes find it.
  std::string Offer() const;
  BoardLayout& layout() const;
  std::byte* RoomOf(int note) const;

 private:
  explicit Board(std::unique_ptr<SharedMapping> memory) : memory_(std::move(memory)) {}
  const std::unique_ptr<SharedMapping> memory_;
};

// What a note is of: the epoch, the exchange, its round.
struct NoteKey {
  uint64_t epoch = 0;
  int32_t instance = 0;
  uint64_t ordinal = 0;
  uint64_t frame = 0;
  int64_t iteration = 0;
  int32_t round = 0;
  bool operator==(const NoteKey&) const = default;
};

// The boards of a group as one of its tasks has them. Thread-safe.
class Boards {
 public:
  // `offers` are of the group's tasks, in order; empty where there is none. Tasks whose boards
  // cannot be opened get messages, and so do all if `own` is not what the group was told of `me`.
  static std::shared_ptr<Boards> Open(std::shared_ptr<Board> own, int me,
                                      const std::vector<std::string>& offers);

  // Tasks, as bits, whose boards are read here.
  uint64_t opened() const { return opened_; }

  struct Piece {
    int64_t offset = 0;  // in the whole
    Tensor bytes;
  };
  // Pins parts of a whole of `size` bytes up for `tasks`. Returns those of them that will find it;
  // the others need a message.
  uint64_t Post(const NoteKey& key, absl::string_view signature, int64_t size,
                const std::vector<Piece>& pieces, uint64_t tasks);

  struct Note {
    std::string signature;
    Tensor whole;  // bytes, as the sender's parts stand in it; not initialized: it has none
    int place = 0;
    uint64_t number = 0;
  };
  // What `task` has up for this task. Its bytes stay until Return.
  std::optional<Note> Find(int task, const NoteKey& key) const;
  bool Has(int task, const NoteKey& key) const { return Look(task, key, nullptr).has_value(); }
  void Return(int task, const Note& note);
  // The instances of which `task` has notes up for this task.
  std::vector<int32_t> Instances(int task) const;

  // A task that does not look any more, though it waits, is told by messages that it should.
  // Who waits looks once more after this; who posts asks after that.
  void Sleep();
  void Wake();
  bool IsAsleep(int task) const;

 private:
  Boards(std::shared_ptr<Board> own, int me, std::vector<std::shared_ptr<Board>> boards);
  // True if it is there; then `note`, which may be null, has all but its bytes. Returns their size.
  std::optional<uint64_t> Look(int task, const NoteKey& key, Note* note) const;
  // Tasks that look at this task's board.
  uint64_t Readers() const;
  int FreePlace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Board> own_;  // shared with the engine, which offers it
  const int me_;
  const std::vector<std::shared_ptr<Board>> boards_;  // shared with tensors; null: not to be had
  uint64_t opened_ = 0;
  absl::Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  struct Pinned {
    uint64_t number = 0;
    uint64_t tasks = 0;
  };
  Pinned pinned_[kNotesOfBoard] ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::collective
