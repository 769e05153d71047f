// SPDX-License-Identifier: Apache-2.0
// Updates of a few rows of a large table write in place while the table is copied, and the rows are
// noted: a copy of gigabytes in each round would cost more than all else.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/handover/variable_rounds.h"
#include "weft/kernel/variable_keeper.h"

namespace weft::handover {

// Of a device as long as it lives; notes for whoever copies now. Thread-safe.
class RowNotes final : public VariableKeeper {
 public:
  // Null: for nobody. Waits for updates that write.
  void NoteFor(VariableRounds* rounds);

  bool MayWriteRows(const Tensor& value, const Tensor& rows) override;
  void RowsWritten(const Tensor& value) override;

 private:
  absl::Mutex mutex_;  // taken after variables' mutexes
  VariableRounds* rounds_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  int writers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::handover
