// SPDX-License-Identifier: Apache-2.0
// Pods as their owners see them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/reconcile/plan.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// "x-7qk2b": of a letter and digit alphabet without vowels, as a server makes names. The same seed
// gives the same name.
std::string NameWithSuffix(const std::string& prefix, const std::string& seed);

// The same, but none of `taken`, which it joins.
std::string FreshName(const std::string& prefix, const std::string& seed,
                      std::set<std::string>* taken);
std::set<std::string> NamesOf(const std::vector<ObjectPtr>& objects);

// The template of `owner` as a pod of that name, which the owner controls.
Json MakeOwnedPod(const Json& owner, const Json& pod_template, const std::string& name);

// Those that are given up first come first: not bound, waiting, not ready, and of the others the
// youngest.
void SortForDeletion(absl::Time now, std::vector<ObjectPtr>* pods);

// How many of `pods` are ready and available, and when another one becomes so.
struct PodCounts {
  int64_t ready = 0;
  int64_t available = 0;
  absl::Duration next_available = absl::InfiniteDuration();
};
PodCounts CountPods(const std::vector<ObjectPtr>& pods, int64_t min_ready_seconds, absl::Time now);

}  // namespace weft::platform
