// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/owned_pods.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"
#include "platform/reconcile/owned_objects.h"

namespace weft::platform {
namespace {

constexpr int kSuffixLetters = 5;

uint64_t Mix(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::string NameWithSuffix(const std::string& prefix, const std::string& seed) {
  static constexpr char kLetters[] = "bcdfghjklmnpqrstvwxz2456789";
  constexpr size_t kLongestPrefix = 58;
  uint64_t random = Mix(absl::StrCat(prefix, "\n", seed));
  random ^= random >> 29;
  std::string name = prefix.substr(0, kLongestPrefix);
  for (int i = 0; i < kSuffixLetters; ++i, random /= sizeof(kLetters) - 1)
    name.push_back(kLetters[random % (sizeof(kLetters) - 1)]);
  return name;
}

std::string FreshName(const std::string& prefix, const std::string& seed,
                      std::set<std::string>* taken) {
  std::string name = NameWithSuffix(prefix, seed);
  for (int i = 0; !taken->insert(name).second; ++i)
    name = NameWithSuffix(prefix, absl::StrCat(seed, "/", i));
  return name;
}

std::set<std::string> NamesOf(const std::vector<ObjectPtr>& objects) {
  std::set<std::string> names;
  for (const ObjectPtr& object : objects) names.insert(NameOf(*object));
  return names;
}

Json MakeOwnedPod(const Json& owner, const Json& pod_template, const std::string& name) {
  Json pod;
  pod.Set("apiVersion", "v1");
  pod.Set("kind", "Pod");
  Json metadata;
  metadata.Set("name", name);
  for (const char* field : {"labels", "annotations", "finalizers"}) {
    if (const Json* const held = FindField(pod_template, {"metadata", field}))
      metadata.Set(field, *held);
  }
  metadata.Set("ownerReferences", Json(Json::Array{ControllerReference(owner)}));
  pod.Set("metadata", std::move(metadata));
  if (const Json* const spec = FindField(pod_template, {"spec"})) pod.Set("spec", *spec);
  return pod;
}

void SortForDeletion(absl::Time now, std::vector<ObjectPtr>* pods) {
  const auto rank = [now](const ObjectPtr& pod) {
    const PodView view(*pod);
    const std::string phase = view.phase();
    const int by_phase = phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
    const absl::Duration ready = view.is_ready() ? now - view.ready_since() : absl::ZeroDuration();
    return std::tuple(view.is_bound(), by_phase, view.is_ready(), ready, -view.restarts(),
                      now - view.created());
  };
  std::stable_sort(pods->begin(), pods->end(),
                   [&](const ObjectPtr& a, const ObjectPtr& b) { return rank(a) < rank(b); });
}

PodCounts CountPods(const std::vector<ObjectPtr>& pods, int64_t min_ready_seconds, absl::Time now) {
  PodCounts counts;
  for (const ObjectPtr& pod : pods) {
    const PodView view(*pod);
    if (!view.is_ready()) continue;
    ++counts.ready;
    if (view.is_available(min_ready_seconds, now)) {
      ++counts.available;
    } else {
      counts.next_available = std::min(counts.next_available,
                                       view.ready_since() + absl::Seconds(min_ready_seconds) - now);
    }
  }
  return counts;
}

}  // namespace weft::platform
