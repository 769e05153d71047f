// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_probes.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace weft::platform {

std::unique_ptr<ContainerProbes> ContainerProbes::Begin(const Json& container,
                                                        const ContainerCommand& command,
                                                        absl::Time now) {
  auto probes = absl::WrapUnique(new ContainerProbes(command));
  const auto read = [&](const char* name, bool is_good_at_first, std::optional<Probe>* probe) {
    std::optional<ProbeSpec> wanted = ReadProbe(container, name);
    if (wanted.has_value()) probe->emplace(*std::move(wanted), now, is_good_at_first);
  };
  read("startupProbe", false, &probes->startup_);
  read("livenessProbe", true, &probes->liveness_);
  read("readinessProbe", false, &probes->readiness_);
  const bool has_some = probes->startup_ || probes->liveness_ || probes->readiness_;
  return has_some ? std::move(probes) : nullptr;
}

std::string ContainerProbes::FindDeath() const {
  if (startup_ && startup_->has_failed())
    return absl::StrCat("its startup probe fails: ", startup_->why());
  if (liveness_ && liveness_->has_failed())
    return absl::StrCat("its liveness probe fails: ", liveness_->why());
  return "";
}

ContainerProbes::Health ContainerProbes::Step(ProcessGuard* guard, ThreadPool* pool,
                                              absl::Duration grace, absl::Time now) {
  Health health;
  if (startup_ && !startup_->is_good()) startup_->Step(command_, guard, pool, now);
  health.has_started = !startup_ || startup_->is_good();
  if (health.has_started) {
    for (std::optional<Probe>* const probe : {&liveness_, &readiness_}) {
      if (probe->has_value()) (*probe)->Step(command_, guard, pool, now);
    }
  }
  health.is_ready = health.has_started && (!readiness_ || readiness_->is_good());
  if (readiness_ && readiness_->has_failed() != is_unready_told_) {
    is_unready_told_ = !is_unready_told_;
    if (is_unready_told_) health.unready = readiness_->why();
  }
  if (kill_time_ != absl::InfiniteFuture()) return health;
  health.death = FindDeath();
  if (!health.death.empty()) kill_time_ = now + grace;
  return health;
}

absl::Time ContainerProbes::due() const {
  absl::Time due = kill_time_;
  for (const auto* const probe : {&startup_, &liveness_, &readiness_}) {
    if (probe->has_value()) due = std::min(due, (*probe)->due());
  }
  return due;
}

}  // namespace weft::platform
