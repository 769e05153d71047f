// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/surrogate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::platform {

SurrogateCost::SurrogateCost(const PlacementProblem& problem)
    : problem_(problem),
      num_devices_(problem.num_devices()),
      level_of_(problem.graph().num_ops(), 0),
      neighbours_(problem.num_units()),
      incident_(problem.num_units()),
      readers_(problem.graph().tensors.size()) {
  const StepGraph& graph = problem.graph();
  for (int op = 0; op < graph.num_ops(); ++op) {
    for (const int tensor : graph.ops[op].inputs)
      level_of_[op] = std::max(level_of_[op], level_of_[graph.tensors[tensor].producer] + 1);
    num_levels_ = std::max(num_levels_, level_of_[op] + 1);
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const int tensor = static_cast<int>(t);
    const int producer = problem.unit_of(graph.tensors[t].producer);
    for (const int consumer : graph.tensors[t].consumers)
      readers_[t].push_back(problem.unit_of(consumer));
    std::vector<int> units = readers_[t];
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    const bool is_inside = units.empty() || (units.size() == 1 && units[0] == producer);
    if (is_inside) continue;
    incident_[producer].push_back({tensor, true});
    for (const int unit : units) {
      if (unit == producer) continue;
      incident_[unit].push_back({tensor, false});
      neighbours_[unit].push_back(producer);
      neighbours_[producer].push_back(unit);
    }
  }
}

double SurrogateCost::LevelSeconds(int level) const {
  const size_t first = size_t(level) * num_devices_;
  float work = 0;
  float in = 0;
  float out = 0;
  for (int device = 0; device < num_devices_; ++device) {
    work = std::max(work, work_[first + device]);
    in = std::max(in, in_[first + device]);
    out = std::max(out, out_[first + device]);
  }
  return double{work} + std::max(in, out);
}

void SurrogateCost::AddWork(int op, int device, double sign) {
  work_[size_t(level_of_[op]) * num_devices_ + device] +=
      static_cast<float>(sign * problem_.seconds(op, device));
  Touch(level_of_[op]);
}

void SurrogateCost::AddTransfer(int tensor, int from, int to, double sign) {
  const StepTensor& sent = problem_.graph().tensors[tensor];
  const auto taken = static_cast<float>(sign * problem_.TransferSeconds(sent.bytes, from, to));
  const int level = level_of_[sent.producer];
  out_[size_t(level) * num_devices_ + from] += taken;
  in_[size_t(level) * num_devices_ + to] += taken;
  Touch(level);
}

void SurrogateCost::AddTransfers(int tensor, double sign) {
  const int from = assignment_[problem_.unit_of(problem_.graph().tensors[tensor].producer)];
  const int* const count = &count_[size_t(tensor) * num_devices_];
  for (int to = 0; to < num_devices_; ++to) {
    if (count[to] > 0 && to != from) AddTransfer(tensor, from, to, sign);
  }
}

double SurrogateCost::Reset(const Assignment& assignment) {
  const StepGraph& graph = problem_.graph();
  assignment_ = assignment;
  const size_t cells = size_t(num_levels_) * num_devices_;
  work_.assign(cells, 0);
  in_.assign(cells, 0);
  out_.assign(cells, 0);
  count_.assign(graph.tensors.size() * num_devices_, 0);
  is_touched_.assign(num_levels_, 0);
  touched_.clear();
  left_.clear();
  for (int device = 0; device < num_devices_; ++device)
    left_.push_back(problem_.device_bytes(device));
  for (int unit = 0; unit < problem_.num_units(); ++unit)
    left_[assignment[unit]] -= problem_.unit_bytes(unit);
  for (int op = 0; op < graph.num_ops(); ++op) AddWork(op, assignment[problem_.unit_of(op)], 1);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    for (const int unit : readers_[t]) ++count_[t * num_devices_ + assignment[unit]];
    AddTransfers(static_cast<int>(t), 1);
  }
  level_seconds_.assign(num_levels_, 0);
  seconds_ = 0;
  Settle();
  return seconds_;
}

void SurrogateCost::Settle() {
  for (const int level : touched_) {
    is_touched_[level] = 0;
    const double now = LevelSeconds(level);
    seconds_ += now - level_seconds_[level];
    level_seconds_[level] = now;
  }
  touched_.clear();
}

double SurrogateCost::Move(int unit, int to) {
  const int from = assignment_[unit];
  if (from == to) return seconds_;
  for (const int op : problem_.ops_of(unit)) {
    AddWork(op, from, -1);
    AddWork(op, to, 1);
  }
  left_[from] += problem_.unit_bytes(unit);
  left_[to] -= problem_.unit_bytes(unit);
  for (const Incident& each : incident_[unit]) {
    int* const count = &count_[size_t(each.tensor) * num_devices_];
    if (each.is_producer) {
      // All ways of the tensor begin elsewhere now; readers inside of the unit move along.
      AddTransfers(each.tensor, -1);
      for (const int reader : readers_[each.tensor]) {
        if (reader != unit) continue;
        --count[from];
        ++count[to];
      }
      assignment_[unit] = to;
      AddTransfers(each.tensor, 1);
      assignment_[unit] = from;
      continue;
    }
    const int source =
        assignment_[problem_.unit_of(problem_.graph().tensors[each.tensor].producer)];
    const bool was_there = count[to] > 0;
    for (const int reader : readers_[each.tensor]) {
      if (reader != unit) continue;
      --count[from];
      ++count[to];
    }
    if (count[from] == 0 && from != source) AddTransfer(each.tensor, source, from, -1);
    if (!was_there && to != source) AddTransfer(each.tensor, source, to, 1);
  }
  assignment_[unit] = to;
  Settle();
  return seconds_;
}

int SurrogateCost::NeighbourDevice(int unit, PlacementRandom* random) const {
  const std::vector<int>& near = neighbours_[unit];
  if (near.empty()) return assignment_[unit];
  return assignment_[near[random->Below(static_cast<int>(near.size()))]];
}

Assignment AnnealSurrogate(const PlacementProblem& problem, SurrogateCost* cost, Assignment start,
                           int64_t moves, PlacementRandom* random) {
  constexpr double kFirst = 0.02;  // in parts of the step
  constexpr double kLast = 0.00002;
  constexpr int64_t kRenewed = 200000;  // sums of many small differences drift
  double now = cost->Reset(start);
  Assignment best = std::move(start);
  double best_seconds = now;
  const double whole = now;
  double temperature = kFirst * whole;
  const double cooling =
      std::pow(kLast / kFirst, 1 / static_cast<double>(std::max<int64_t>(moves, 1)));
  const int devices = problem.num_devices();
  if (devices < 2) return best;
  int64_t since_best = 0;
  for (int64_t i = 0; i < moves; ++i, temperature *= cooling) {
    if (i % kRenewed == kRenewed - 1) now = cost->Reset(Assignment(cost->assignment()));
    const int unit = random->Below(problem.num_units());
    const int from = cost->assignment()[unit];
    int to = random->Below(2) == 0 ? from : cost->NeighbourDevice(unit, random);
    if (to == from) {
      to = random->Below(devices - 1);
      to += to >= from ? 1 : 0;
    }
    if (!cost->HasRoom(unit, to)) continue;
    const double moved = cost->Move(unit, to);
    if (moved > now && random->Part() >= std::exp((now - moved) / temperature)) {
      now = cost->Move(unit, from);
      continue;
    }
    now = moved;
    // Copying each time would cost more than the moves.
    if (now < best_seconds && (++since_best >= problem.num_units() || i > moves / 2)) {
      since_best = 0;
      best_seconds = now;
      best = cost->assignment();
    }
  }
  if (now < best_seconds) best = cost->assignment();
  return best;
}

}  // namespace weft::platform
