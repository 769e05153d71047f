// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/problem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

// By device, the number of its profile.
std::vector<int> ProfileOf(const Cluster& cluster, std::vector<DeviceProfile>* profiles) {
  std::map<std::pair<std::string, double>, int> numbers;
  std::vector<int> profile_of;
  for (const PlanDevice& device : cluster.devices) {
    const auto [found, is_new] = numbers.try_emplace({device.profile.model, device.profile.flops},
                                                     static_cast<int>(profiles->size()));
    if (is_new) profiles->push_back(device.profile);
    profile_of.push_back(found->second);
  }
  return profile_of;
}

}  // namespace

StatusOr<PlacementProblem> PlacementProblem::Make(const StepGraph& step, const Cluster& cluster,
                                                  const CostModel& model, int most_ops) {
  if (step.ops.empty()) return InvalidArgument(step.name, ": there are no ops in the step");
  PlacementProblem problem;
  problem.cluster_ = &cluster;
  problem.num_devices_ = cluster.num_devices();
  problem.graph_ = Coarsen(step, most_ops, /*keep_roles=*/false, &problem.part_of_);
  const int devices = problem.num_devices_;
  std::vector<DeviceProfile> profiles;
  problem.profile_of_ = ProfileOf(cluster, &profiles);
  problem.num_profiles_ = static_cast<int>(profiles.size());
  problem.seconds_.assign(size_t(problem.graph_.num_ops()) * profiles.size(), 0);
  for (int op = 0; op < step.num_ops(); ++op) {
    double* const row = &problem.seconds_[size_t(problem.part_of_[op]) * profiles.size()];
    for (size_t i = 0; i < profiles.size(); ++i) row[i] += model.Seconds(step.ops[op], profiles[i]);
  }
  for (int from = 0; from < devices; ++from) {
    problem.device_bytes_.push_back(static_cast<double>(cluster.devices[from].profile.memory));
    for (int to = 0; to < devices; ++to) {
      problem.latency_.push_back(cluster.Latency(from, to));
      problem.seconds_per_byte_.push_back(1 / std::max(cluster.Bandwidth(from, to), 1.0));
    }
  }
  WEFT_RETURN_IF_ERROR(problem.MakeUnits());
  WEFT_RETURN_IF_ERROR(problem.CheckMemory());
  problem.MakeRanks();
  return problem;
}

Status PlacementProblem::MakeUnits() {
  std::map<int, int> unit_of_group;
  for (int op = 0; op < graph_.num_ops(); ++op) {
    const int next = static_cast<int>(ops_of_.size());
    int unit = next;
    if (graph_.ops[op].group >= 0)
      unit = unit_of_group.try_emplace(graph_.ops[op].group, next).first->second;
    if (unit == next) {
      ops_of_.emplace_back();
      unit_bytes_.push_back(0);
    }
    unit_of_.push_back(unit);
    ops_of_[unit].push_back(op);
    unit_bytes_[unit] += graph_.ops[op].state_bytes + graph_.ops[op].output_bytes;
  }
  unit_seconds_.assign(size_t(num_units()) * num_profiles_, 0);
  for (int op = 0; op < graph_.num_ops(); ++op) {
    for (int i = 0; i < num_profiles_; ++i) {
      unit_seconds_[size_t(unit_of_[op]) * num_profiles_ + i] +=
          seconds_[size_t(op) * num_profiles_ + i];
    }
  }
  return absl::OkStatus();
}

Status PlacementProblem::CheckMemory() const {
  const auto largest = std::max_element(device_bytes_.begin(), device_bytes_.end());
  double held = 0;
  double offered = 0;
  for (const double bytes : device_bytes_) offered += bytes;
  for (int unit = 0; unit < num_units(); ++unit) {
    held += unit_bytes(unit);
    if (unit_bytes(unit) <= *largest) continue;
    return ResourceExhausted(
        "'", graph_.ops[ops_of_[unit].front()].name, "' holds ",
        absl::StrFormat("%.1f GiB, and the largest memory, that of %s, is %.1f GiB: %.1f GiB are "
                        "missing there. A variable must be partitioned, or the batch be smaller",
                        unit_bytes(unit) / static_cast<double>(kGibibyte),
                        cluster_->devices[largest - device_bytes_.begin()].name,
                        *largest / static_cast<double>(kGibibyte),
                        (unit_bytes(unit) - *largest) / static_cast<double>(kGibibyte)));
  }
  if (held <= offered) return absl::OkStatus();
  return ResourceExhausted(
      graph_.name, absl::StrFormat(": the step holds %.1f GiB, and all %d devices together have "
                                   "%.1f GiB: %.1f GiB are missing",
                                   held / static_cast<double>(kGibibyte), num_devices_,
                                   offered / static_cast<double>(kGibibyte),
                                   (held - offered) / static_cast<double>(kGibibyte)));
}

void PlacementProblem::MakeRanks() {
  double latency = 0;
  double per_byte = 0;
  for (size_t i = 0; i < latency_.size(); ++i) {
    latency += latency_[i] / static_cast<double>(latency_.size());
    per_byte += seconds_per_byte_[i] / static_cast<double>(latency_.size());
  }
  ranks_.assign(graph_.num_ops(), 0);
  for (int op = graph_.num_ops() - 1; op >= 0; --op) {
    double behind = 0;
    for (const int tensor : graph_.ops[op].outputs) {
      for (const int consumer : graph_.tensors[tensor].consumers) {
        const double way = num_devices_ > 1 ? latency + graph_.tensors[tensor].bytes * per_byte : 0;
        behind = std::max(behind, way + ranks_[consumer]);
      }
    }
    double mean = 0;
    for (int device = 0; device < num_devices_; ++device) mean += seconds(op, device);
    ranks_[op] = behind + mean / num_devices_;
  }
}

bool PlacementProblem::Fits(const Assignment& assignment) const {
  std::vector<double> held(num_devices_, 0);
  for (int unit = 0; unit < num_units(); ++unit) held[assignment[unit]] += unit_bytes(unit);
  for (int device = 0; device < num_devices_; ++device) {
    if (held[device] > device_bytes_[device]) return false;
  }
  return true;
}

}  // namespace weft::platform
