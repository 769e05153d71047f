// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/row_notes.h"

namespace weft::handover {

void RowNotes::NoteFor(VariableRounds* rounds) {
  absl::MutexLock lock(&mutex_);
  is_open_ = false;  // no more of them
  const auto idle = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return writers_ == 0; };
  mutex_.Await(absl::Condition(&idle));
  rounds_ = rounds;
  is_open_ = rounds != nullptr;
}

bool RowNotes::MayWriteRows(const Tensor& value, const Tensor& rows) {
  VariableRounds* rounds = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!is_open_) return false;
    rounds = rounds_;
    ++writers_;  // who notes stays until it is done
  }
  if (rounds->BeginRows(value, rows)) return true;
  absl::MutexLock lock(&mutex_);
  --writers_;
  return false;
}

void RowNotes::RowsWritten(const Tensor& value) {
  VariableRounds* rounds = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    rounds = rounds_;
  }
  rounds->EndRows(value);
  absl::MutexLock lock(&mutex_);
  --writers_;
}

}  // namespace weft::handover
