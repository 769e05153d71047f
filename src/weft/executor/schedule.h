// SPDX-License-Identifier: Apache-2.0
// A straight-line plan cut into units that may run beside each other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/compile/plan.h"
#include "weft/executor/costs.h"

namespace weft::executor {

struct ScheduleOptions {
  int num_threads = 1;
  // Instructions that take longer may be handed to another thread.
  int64_t worth_handing_over = kWorthHandingOver;
  // True: a schedule is made even if it is not reckoned to gain anything.
  bool always = false;
};

// What may run when. In whatever order the units run, a step gives what the instructions give in
// plan order: a node that changes a variable waits for all that stands before it and changes none,
// readers that stand behind it wait for it, nodes with other effects run in plan order, and so do
// two that may change one variable. Immutable.
class Schedule {
 public:
  struct Call {
    int instruction = 0;
    std::vector<int> releases;  // slots that nobody reads after this call
    std::vector<int> drops;     // positions in counted(): this unit has read the slot for good
  };
  // Calls that run one after another on one thread.
  struct Unit {
    std::vector<Call> calls;
    std::vector<int> dependents;  // units
    int num_waits = 0;
    int64_t nanoseconds = 0;
    bool is_heavy = false;  // worth another thread
  };
  // A slot that units read which may run in either order: the last of them releases it.
  struct Counted {
    int slot = 0;
    int num_units = 0;
  };

  // Null if running units side by side gains too little by what was measured, or there are too
  // many.
  static std::shared_ptr<const Schedule> Make(const compile::Plan& plan, const CostTable& costs,
                                              const ScheduleOptions& options);

  // The first unit runs before all others.
  const std::vector<Unit>& units() const { return units_; }
  const std::vector<Counted>& counted() const { return counted_; }
  // True if instruction `a` has ended when `b` begins, in every order that is allowed.
  bool Precedes(int a, int b) const;
  // True if nobody reads the slot when or after `instruction` does, be it here or in plan order,
  // and it is read there once.
  bool IsLastUse(int instruction, int slot) const;
  const std::vector<int>& readers(int slot) const { return readers_[slot]; }

 private:
  friend class ScheduleBuilder;
  bool UnitPrecedes(int a, int b) const { return ancestors_[b][a]; }

  std::vector<Unit> units_;
  std::vector<Counted> counted_;
  std::vector<int> unit_of_;                  // by instruction
  std::vector<std::vector<bool>> ancestors_;  // by unit: those that end before it begins
  std::vector<std::vector<int>> readers_;     // by slot: instructions, once for each input
};

}  // namespace weft::executor
