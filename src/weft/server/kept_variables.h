// SPDX-License-Identifier: Apache-2.0
// The variables of a supervised server, in memory that outlives its process.
//
// The unit of what is kept is the end of a step's part: what all variables were when a part ended
// here is committed before anybody hears of its end. A part that a kill cuts off leaves nothing,
// where no other part ended beside it; else each of its updates is there whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "base/threads.h"
#include "supervisor/kept_memory.h"
#include "weft/kernel/device.h"
#include "weft/kernel/variable.h"
#include "weft/kernel/variable_keeper.h"
#include "weft/tensor/tensor.h"

namespace weft::server {

// Thread-safe. Outlives the devices whose variables it keeps.
class KeptVariables final : public VariableKeeper {
 public:
  // Of the memory that this process inherited from its supervisor, which from now on is the memory
  // of all larger tensors: call it before there are any. Null where it inherited none. DataLoss if
  // what is there cannot be trusted.
  static StatusOr<std::unique_ptr<KeptVariables>> Inherit();
  ~KeptVariables() override;

  // Gives the devices the variables that an earlier process left, and keeps from now on what theirs
  // hold. Once.
  void Keep(const std::vector<std::unique_ptr<Device>>& devices);
  // What variables hold is what the next process finds, if this one is killed.
  void Commit();

  struct Counts {
    int64_t restored = 0;        // variables of an earlier process
    int64_t restored_bytes = 0;  // theirs
    int64_t put_back = 0;        // rows of an update that was cut off
    int64_t starts = 0;  // how often the supervisor has started a process, this one included
  };
  const Counts& counts() const { return counts_; }

  bool MayWriteRows(const Tensor& value, const Tensor& rows) override;
  void RowsWritten(const Tensor& value) override;

 private:
  // What is known of a variable.
  struct Slot {
    uint32_t number = 0;
    Tensor committed;  // its handle; not initialized where it has no value or `copy` stands for it
    // Of values that do not lie in kept memory: the committed copy, and room for the next one.
    Ref<Buffer> copy, spare;
    Shape copied_shape;
    bool writes_rows = false;  // in place, now
    bool is_refused = false;   // it cannot be kept, and that was said
    uint64_t seen = 0;         // the last look that found it
  };
  // A value that the next commit commits.
  struct Next {
    Slot* slot = nullptr;
    Tensor value;  // not initialized: there is none any more
    bool is_copied = false;
  };

  KeptVariables(std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  void Restore(const std::vector<std::unique_ptr<Device>>& devices);
  bool RestoreOne(const std::vector<std::unique_ptr<Device>>& devices, const std::string& name,
                  const supervisor::KeptPlace& place, const Ref<Buffer>& pages, uint64_t begin);
  bool Lies(const Tensor& value) const;
  Slot* SlotOf(int device, const std::string& container, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // What of the variable has changed since the last commit.
  void Look(Slot* slot, Variable& variable, std::vector<Next>* next);
  std::vector<Next> LookAtAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  supervisor::KeptPlace PlaceOf(const Tensor& value) const;
  void Refuse(Slot* slot, const Variable& variable);
  bool Note(const Tensor& value, const Tensor& rows);

  std::byte* const data_;
  const uint64_t bytes_;
  std::unique_ptr<supervisor::KeptMemory> memory_;
  Counts counts_;
  std::vector<std::pair<std::byte*, size_t>> rooms_;  // with memory of an earlier process
  std::unique_ptr<Thread> sweep_;                     // gives them back
  std::vector<Device*> devices_;
  absl::Mutex commit_mutex_;  // one commit at a time; taken before variables' mutexes
  absl::flat_hash_map<std::string, std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(commit_mutex_);
  uint64_t looks_ ABSL_GUARDED_BY(commit_mutex_) = 0;
  absl::Mutex rows_mutex_;  // taken after variables' mutexes
  absl::flat_hash_map<const std::byte*, Slot*> by_place_ ABSL_GUARDED_BY(rows_mutex_);
  int row_writers_ ABSL_GUARDED_BY(rows_mutex_) = 0;
  bool commits_ ABSL_GUARDED_BY(rows_mutex_) = false;  // now, or as soon as the writers are done
};

}  // namespace weft::server
