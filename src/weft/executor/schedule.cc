// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

namespace {

// The table of who precedes whom grows with the square of this.
constexpr size_t kMostUnits = 4096;
// What it costs to run a unit at all.
constexpr int64_t kUnitOverhead = 200;
// Light instructions that wait for the same unit join it until they come to this.
constexpr int64_t kMostLightTail = 30'000;

bool IsHandle(const Node& node, int input) {
  return node.input_type(input).is_ref || node.input_type(input).dtype == DType::kResource;
}

bool TakesHandle(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsHandle(node, i)) return true;
  }
  return false;
}

// Has an effect besides its outputs, or reads one, so that the order matters. What makes variables
// and their handles has none.
bool HasEffects(const Instruction& instruction) {
  const Node& node = *instruction.node;
  if (instruction.kind != InstructionKind::kKernel || !node.schema().is_stateful) return false;
  for (int o = 0; o < node.num_outputs(); ++o) {
    if (node.num_inputs() == 0 &&
        (node.output_type(o).is_ref || node.output_type(o).dtype == DType::kResource)) {
      return false;
    }
  }
  return true;
}

// The name of the variable that the input's handle stands for; none if it cannot be told.
std::optional<std::string> VariableBehind(const Node& node, int input) {
  const Node* at = node.input(input).node;
  while (at != nullptr && at->num_inputs() > 0) {
    if (!at->input_type(0).is_ref) return std::nullopt;
    at = at->input(0).node;
  }
  if (at == nullptr || !at->schema().is_stateful) return std::nullopt;
  if (at->LowersTo(InstructionKind::kArgument))
    return std::nullopt;  // two arguments may be the same variable
  const std::string shared = FindAttrOr<std::string>(at->attrs(), "shared_name", "");
  return absl::StrCat(FindAttrOr<std::string>(at->attrs(), "container", ""), "/",
                      shared.empty() ? at->name() : shared);
}

}  // namespace

bool Schedule::Precedes(int a, int b) const {
  const int unit_a = unit_of_[a];
  const int unit_b = unit_of_[b];
  return unit_a == unit_b ? a < b : UnitPrecedes(unit_a, unit_b);
}

bool Schedule::IsLastUse(int instruction, int slot) const {
  int here = 0;
  for (const int reader : readers_[slot]) {
    if (reader == instruction) {
      ++here;
    } else if (reader > instruction || !Precedes(reader, instruction)) {
      return false;  // it might come later, here or in plan order
    }
  }
  return here == 1;
}

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Plan& plan, const CostTable& costs, const ScheduleOptions& options)
      : plan_(plan),
        costs_(costs),
        options_(options),
        schedule_(std::make_shared<Schedule>()),
        sources_(plan.instructions().size()) {
    for (size_t i = 0; i < plan.instructions().size(); ++i) {
      for (const Instruction::Dependent& dependent : plan.instructions()[i].dependents) {
        sources_[dependent.instruction].push_back(static_cast<int>(i));
      }
    }
  }

  std::shared_ptr<const Schedule> Build() {
    schedule_->unit_of_.resize(plan_.instructions().size());
    AddUnit({});
    for (size_t i = 0; i < plan_.instructions().size(); ++i) {
      if (!Add(static_cast<int>(i))) return nullptr;
    }
    if (!options_.always && !IsWorthIt()) return nullptr;
    for (Schedule::Unit& unit : schedule_->units_) {
      unit.is_heavy = unit.nanoseconds >= options_.worth_handing_over;
    }
    PlaceReleases();
    return schedule_;
  }

 private:
  // Makes a unit that waits for `waits`.
  int AddUnit(const std::vector<int>& waits) {
    const int unit = static_cast<int>(schedule_->units_.size());
    schedule_->units_.emplace_back();
    std::vector<bool> ancestors(static_cast<size_t>(unit));
    for (const int before : waits) {
      schedule_->units_[before].dependents.push_back(unit);
      const std::vector<bool>& further = schedule_->ancestors_[before];
      for (size_t i = 0; i < further.size(); ++i) {
        if (further[i]) ancestors[i] = true;
      }
      ancestors[before] = true;
    }
    if (unit > 0) ancestors[0] = true;
    ancestors.resize(kMostUnits);
    schedule_->ancestors_.push_back(std::move(ancestors));
    schedule_->units_.back().num_waits = static_cast<int>(waits.size());
    open_edges_.push_back(0);
    light_tail_.push_back(0);
    return unit;
  }

  bool Add(int i) {
    if (schedule_->units_.size() + 3 >= kMostUnits) return false;
    const Instruction& instruction = plan_.instructions()[i];
    std::vector<int> waits;
    for (const int source : sources_[i]) waits.push_back(schedule_->unit_of_[source]);
    AddOrder(instruction, &waits);
    Reduce(&waits);
    const int64_t cost = costs_.nanoseconds(i);
    const bool is_light = cost < options_.worth_handing_over;
    int unit = -1;
    if (waits.empty() && is_light) {
      unit = 0;
    } else if (waits.size() == 1 && Continues(waits[0], i, is_light ? cost : -1)) {
      unit = waits[0];
    } else {
      unit = AddUnit(waits);
    }
    schedule_->unit_of_[i] = unit;
    schedule_->units_[unit].calls.push_back({.instruction = i});
    schedule_->units_[unit].nanoseconds += cost;
    light_tail_[unit] = is_light ? light_tail_[unit] + cost : 0;
    for (const int source : sources_[i]) --open_edges_[schedule_->unit_of_[source]];
    open_edges_[unit] += static_cast<int>(instruction.dependents.size());
    NoteOrder(instruction, unit);
    return true;
  }

  // Whether instruction `i`, which waits for this unit alone, may as well stand at its end.
  bool Continues(int unit, int i, int64_t light_cost) const {
    if (light_cost >= 0 && light_tail_[unit] + light_cost <= kMostLightTail) return true;
    int edges = 0;
    for (const int source : sources_[i]) {
      if (schedule_->unit_of_[source] == unit) ++edges;
    }
    return edges > 0 && edges == open_edges_[unit];  // nothing else goes on from here
  }

  // Leaves those that no other of them implies.
  void Reduce(std::vector<int>* waits) const {
    std::sort(waits->begin(), waits->end());
    waits->erase(std::unique(waits->begin(), waits->end()), waits->end());
    std::vector<int> kept;
    for (const int unit : *waits) {
      const bool implied = unit == 0 || std::any_of(waits->begin(), waits->end(), [&](int other) {
                             return other != unit && schedule_->ancestors_[other][unit];
                           });
      if (!implied) kept.push_back(unit);
    }
    *waits = std::move(kept);
  }

  // An empty unit that waits for all that have no successor yet.
  int AddBarrier() {
    std::vector<int> last;
    for (size_t u = 1; u < schedule_->units_.size(); ++u) {
      if (schedule_->units_[u].dependents.empty()) last.push_back(static_cast<int>(u));
    }
    return last.size() == 1 ? last[0] : (last.empty() ? 0 : AddUnit(last));
  }

  // What the instruction waits for besides its inputs.
  void AddOrder(const Instruction& instruction, std::vector<int>* waits) {
    const bool has_effects = HasEffects(instruction);
    if (instruction.changes_variable) {
      if (!barrier_is_new_) barrier_ = AddBarrier();
      barrier_is_new_ = true;
      waits->push_back(barrier_);
      const std::optional<std::vector<std::string>> variables = ChangedBy(*instruction.node);
      if (!variables.has_value()) {
        waits->push_back(BehindChanges());
        return;
      }
      waits->push_back(unknown_change_);
      for (const std::string& variable : *variables) {
        const auto found = changed_.find(variable);
        if (found != changed_.end()) waits->push_back(found->second);
      }
    } else if (has_effects || TakesHandle(*instruction.node)) {
      waits->push_back(BehindChanges());
      if (has_effects) waits->push_back(effect_);
    }
  }

  void NoteOrder(const Instruction& instruction, int unit) {
    if (!instruction.changes_variable) {
      barrier_is_new_ = false;
      if (HasEffects(instruction)) effect_ = unit;
      return;
    }
    changes_.push_back(unit);
    const std::optional<std::vector<std::string>> variables = ChangedBy(*instruction.node);
    if (!variables.has_value()) {
      unknown_change_ = unit;
    } else {
      for (const std::string& variable : *variables) changed_[variable] = unit;
    }
  }

  // A unit that begins when all changes of variables so far have been made.
  int BehindChanges() {
    if (changes_.size() > 1) {
      Reduce(&changes_);
      if (changes_.size() > 1) changes_ = {AddUnit(changes_)};
    }
    return changes_.empty() ? 0 : changes_[0];
  }

  // Names of the variables that the node may change; none where one cannot be told.
  static std::optional<std::vector<std::string>> ChangedBy(const Node& node) {
    std::vector<std::string> changed;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (!IsHandle(node, i)) continue;
      std::optional<std::string> variable = VariableBehind(node, i);
      if (!variable.has_value()) return std::nullopt;
      changed.push_back(*std::move(variable));
    }
    return changed;
  }

  // Reckons how long the step would take, one thread taking the first ready unit when it is free.
  // Kernels that share themselves out gain nothing.
  bool IsWorthIt() const {
    int64_t in_turn = 0;
    int64_t shared = 0;
    std::vector<int64_t> own(schedule_->units_.size());
    for (size_t u = 0; u < own.size(); ++u) {
      for (const Schedule::Call& call : schedule_->units_[u].calls) {
        const int64_t cost = costs_.nanoseconds(call.instruction);
        in_turn += cost;
        (costs_.shares(call.instruction) ? shared : own[u]) += cost;
      }
      own[u] += own[u] >= options_.worth_handing_over ? kHandOver : kUnitOverhead;
    }
    const int64_t gain = in_turn - shared - TimeSideBySide(own);
    return gain > std::max(kHandOver * 4, in_turn / 10);
  }

  int64_t TimeSideBySide(const std::vector<int64_t>& own) const {
    std::vector<int> waits(own.size());
    std::vector<int> ready;  // a heap, the first unit on top
    for (size_t u = 1; u < own.size(); ++u) {
      waits[u] = schedule_->units_[u].num_waits;
      if (waits[u] == 0) ready.push_back(static_cast<int>(u));
    }
    std::make_heap(ready.begin(), ready.end(), std::greater<>());
    std::priority_queue<std::pair<int64_t, int>, std::vector<std::pair<int64_t, int>>,
                        std::greater<>>
        running;
    int64_t now = own[0];
    while (!ready.empty() || !running.empty()) {
      while (!ready.empty() && static_cast<int>(running.size()) < options_.num_threads) {
        std::pop_heap(ready.begin(), ready.end(), std::greater<>());
        running.push({now + own[ready.back()], ready.back()});
        ready.pop_back();
      }
      const auto [end, unit] = running.top();
      running.pop();
      now = end;
      for (const int next : schedule_->units_[unit].dependents) {
        if (--waits[next] > 0) continue;
        ready.push_back(next);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
    }
    return now;
  }

  void PlaceReleases() {
    std::vector<std::vector<int>>& readers = schedule_->readers_;
    readers.resize(plan_.num_slots());
    std::vector<Schedule::Call*> call_of(plan_.instructions().size());
    for (Schedule::Unit& unit : schedule_->units_) {
      for (Schedule::Call& call : unit.calls) call_of[call.instruction] = &call;
    }
    std::vector<int> writer(plan_.num_slots(), -1);
    for (size_t i = 0; i < plan_.instructions().size(); ++i) {
      const Instruction& instruction = plan_.instructions()[i];
      for (const int slot : instruction.inputs) readers[slot].push_back(static_cast<int>(i));
      for (int o = 0; o < instruction.num_outputs; ++o) {
        writer[instruction.first_output + o] = static_cast<int>(i);
      }
    }
    for (int slot = 0; slot < plan_.num_slots(); ++slot) {
      if (writer[slot] < 0) continue;
      std::map<int, int> last;  // by unit that reads the slot: its last instruction to do so
      for (const int reader : readers[slot]) last[schedule_->unit_of_[reader]] = reader;
      if (last.empty()) {
        call_of[writer[slot]]->releases.push_back(slot);
      } else if (last.size() == 1) {
        call_of[last.begin()->second]->releases.push_back(slot);
      } else {
        for (const auto& [unit, reader] : last) {
          call_of[reader]->drops.push_back(static_cast<int>(schedule_->counted_.size()));
        }
        schedule_->counted_.push_back({slot, static_cast<int>(last.size())});
      }
    }
  }

  const Plan& plan_;
  const CostTable& costs_;
  const ScheduleOptions& options_;
  const std::shared_ptr<Schedule> schedule_;  // shared by the steps that run by it
  std::vector<std::vector<int>> sources_;     // by instruction
  std::vector<int> open_edges_;               // by unit: to instructions that have no unit yet
  std::vector<int64_t> light_tail_;           // by unit: cost since its last heavy instruction
  int barrier_ = 0;
  bool barrier_is_new_ = false;
  int effect_ = 0;                      // the unit of the last instruction with effects
  int unknown_change_ = 0;              // the last that changes a variable without a name
  std::vector<int> changes_;            // units that change variables, or one that waits for them
  std::map<std::string, int> changed_;  // by variable: the unit that changed it last
};

std::shared_ptr<const Schedule> Schedule::Make(const Plan& plan, const CostTable& costs,
                                               const ScheduleOptions& options) {
  int num_heavy = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const bool alone = !costs.shares(static_cast<int>(i));
    if (alone && costs.nanoseconds(static_cast<int>(i)) >= options.worth_handing_over) ++num_heavy;
  }
  if (num_heavy < 2 && !options.always) return nullptr;
  return ScheduleBuilder(plan, costs, options).Build();
}

}  // namespace weft::executor
