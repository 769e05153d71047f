// SPDX-License-Identifier: Apache-2.0
// What a task's variables hold, in rounds: each tells what has changed since the one before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "proto/weft/handover.pb.h"
#include "weft/kernel/device.h"
#include "weft/kernel/variable.h"
#include "weft/tensor/tensor.h"

namespace weft::handover {

struct ChangedRange {
  uint32_t variable = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Round {
  std::vector<wire::HandedVariable> variables;  // new, of another shape, or gone
  std::vector<ChangedRange> ranges;             // none longer than kMostInRange
  uint64_t bytes = 0;                           // of all ranges
};

// Steps may go on: what a round tells is what each variable held at one moment of it, but for rows
// that are written meanwhile, which the next round tells again. Holds what it told last, so that
// other updates copy the variable first. Not thread-safe but for BeginRows and EndRows.
class VariableRounds {
 public:
  static constexpr uint64_t kMostInRange = uint64_t{4} << 20;

  // The devices must outlive it.
  explicit VariableRounds(std::vector<Device*> devices) : devices_(std::move(devices)) {}

  // FailedPrecondition names what cannot go to another process: a variable of strings, one in a
  // device's own memory, a queue or a table.
  StatusOr<Round> Next();
  // Of the last round, valid until the next.
  const std::byte* BytesOf(uint32_t variable) const { return places_[variable]; }

  // As VariableKeeper's: whether these rows of a variable's value may be written in place. Then
  // EndRows follows.
  bool BeginRows(const Tensor& value, const Tensor& rows);
  void EndRows(const Tensor& value);

 private:
  struct Known {
    uint32_t number = 0;
    bool is_dense = false;  // most of it changed when it was compared last
    uint64_t seen = 0;      // the last round that found it
  };
  // What was told of a variable.
  struct Told {
    Tensor value;               // not initialized while rows are written, or if it holds nothing
    std::vector<bool> written;  // pieces of it that have been, in place, since
    int writers = 0;
  };
  Status Look(int device, const std::string& container, const std::string& name,
              const Variable& variable, Round* round);
  static void AddWhole(uint32_t number, uint64_t bytes, Round* round);
  static void AddDifferences(uint32_t number, const Told& before, const Tensor& now, Round* round);
  static void AddPiece(uint32_t number, uint64_t offset, uint64_t bytes, Round* round);
  static void AddWritten(uint32_t number, uint64_t bytes, Told* told, Round* round);

  const std::vector<Device*> devices_;
  std::map<std::string, Known> known_;
  std::vector<const std::byte*> places_;  // by number
  absl::Mutex rows_mutex_;                // taken after variables' mutexes
  std::vector<Told> told_ ABSL_GUARDED_BY(rows_mutex_);
  std::map<const std::byte*, uint32_t> by_place_ ABSL_GUARDED_BY(rows_mutex_);
  uint64_t round_ = 0;
};

}  // namespace weft::handover
