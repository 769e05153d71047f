// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/load_book.h"

#include <utility>

namespace weft::platform {

void LoadBook::Note(const std::string& pod, const std::string& revision, ServerCounts counts,
                    absl::Time now) {
  Entry& entry = pods_[pod];
  entry.revision = revision;
  if (entry.notes > 0) {
    entry.micros_between = counts.Since(entry.last).micros;
    // It began anew.
    if (counts.requests < entry.base.requests || counts.micros < entry.base.micros)
      entry.base = ServerCounts();
  }
  entry.noted_before = entry.noted;
  entry.noted = now;
  entry.last = std::move(counts);
  ++entry.notes;
}

void LoadBook::Keep(const std::set<std::string>& pods) {
  std::erase_if(pods_, [&](const auto& entry) { return !pods.contains(entry.first); });
}

std::optional<double> LoadBook::RequestsAt(const std::string& pod) const {
  const auto found = pods_.find(pod);
  if (found == pods_.end() || found->second.notes < 2) return std::nullopt;
  const Entry& entry = found->second;
  const double micros = absl::ToDoubleMicroseconds(entry.noted - entry.noted_before);
  if (micros <= 0) return std::nullopt;
  return static_cast<double>(entry.micros_between) / micros;
}

void LoadBook::BeginWatch(const std::string& name) {
  if (watch_ == name) return;
  watch_ = name;
  for (auto& [pod, entry] : pods_) entry.base = entry.last;
}

ServerCounts LoadBook::Watched(const std::string& revision) const {
  ServerCounts sum;
  for (const auto& [pod, entry] : pods_) {
    if (entry.revision == revision) sum.Add(entry.last.Since(entry.base));
  }
  return sum;
}

}  // namespace weft::platform
