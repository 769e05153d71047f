// SPDX-License-Identifier: Apache-2.0
// What a task's variables hold, in rounds: each tells what has changed since the one before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

// Steps may go on: what a round tells is what each variable held at one moment of it. Holds what it
// told last, so that updates copy the variable first. Not thread-safe.
class VariableRounds {
 public:
  static constexpr uint64_t kMostInRange = uint64_t{4} << 20;

  // The devices must outlive it.
  explicit VariableRounds(std::vector<Device*> devices) : devices_(std::move(devices)) {}

  // FailedPrecondition names what cannot go to another process: a variable of strings, one in a
  // device's own memory, a queue or a table.
  StatusOr<Round> Next();
  // As of the last round.
  const Tensor& ValueOf(uint32_t variable) const { return values_[variable]; }

 private:
  struct Known {
    uint32_t number = 0;
    bool is_dense = false;  // most of it changed when it was compared last
    uint64_t seen = 0;      // the last round that found it
  };
  Status Look(int device, const std::string& container, const std::string& name,
              const Variable& variable, Round* round);
  static void AddWhole(uint32_t number, uint64_t bytes, Round* round);
  static void AddDifferences(uint32_t number, const Tensor& before, const Tensor& now,
                             Round* round);

  const std::vector<Device*> devices_;
  std::map<std::string, Known> known_;
  std::vector<Tensor> values_;
  uint64_t round_ = 0;
};

}  // namespace weft::handover
