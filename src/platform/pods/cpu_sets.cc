// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/cpu_sets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

bool Has(const std::vector<int>& processors, int processor) {
  return std::find(processors.begin(), processors.end(), processor) != processors.end();
}

}  // namespace

ProcessorWish ReadProcessorWish(const Json& pod, const Json& container) {
  ProcessorWish wish;
  const Json* const limit = FindField(container, {"resources", "limits", "cpu"});
  if (limit == nullptr) return wish;
  wish.limit_thousandths = std::max<int64_t>(0, ParseQuantity(*limit).value_or(0));
  const bool is_whole = wish.limit_thousandths % 1000 == 0;
  if (is_whole && StringField(pod, {"status", "qosClass"}) == "Guaranteed")
    wish.own = wish.limit_thousandths / 1000;
  return wish;
}

int CpuSets::UsersOf(int processor) const {
  return static_cast<int>(std::count_if(holders_.begin(), holders_.end(), [&](const auto& holder) {
    return Has(holder.second.narrowed, processor);
  }));
}

int CpuSets::LeastUsed(const std::vector<int>& but) const {
  int best = -1;
  for (const int processor : shared_) {
    if (Has(but, processor)) continue;
    if (best < 0 || UsersOf(processor) < UsersOf(best)) best = processor;
  }
  return best;
}

// After the shared ones have changed: keeps what may be kept, so that little moves.
void CpuSets::Narrow() {
  for (auto& [id, holder] : holders_) {
    auto& narrowed = holder.narrowed;
    narrowed.erase(std::remove_if(narrowed.begin(), narrowed.end(),
                                  [&](int processor) { return !Has(shared_, processor); }),
                   narrowed.end());
  }
  for (auto& [id, holder] : holders_) {
    while (holder.narrowed.size() < std::min(holder.most, shared_.size()))
      holder.narrowed.push_back(LeastUsed(holder.narrowed));
    std::sort(holder.narrowed.begin(), holder.narrowed.end());
  }
}

void CpuSets::Take(const std::string& id, const ProcessorWish& wish) {
  Release(id);
  Holder holder;
  if (wish.own > 0 && wish.own < static_cast<int64_t>(shared_.size())) {
    while (static_cast<int64_t>(holder.own.size()) < wish.own)
      holder.own.push_back(LeastUsed(holder.own));
    std::sort(holder.own.begin(), holder.own.end());
    shared_.erase(std::remove_if(shared_.begin(), shared_.end(),
                                 [&](int processor) { return Has(holder.own, processor); }),
                  shared_.end());
  } else if (wish.limit_thousandths > 0) {
    holder.most = static_cast<size_t>((wish.limit_thousandths + 999) / 1000);
  }
  holders_[id] = std::move(holder);
  Narrow();
}

void CpuSets::Release(const std::string& id) {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  shared_.insert(shared_.end(), found->second.own.begin(), found->second.own.end());
  std::sort(shared_.begin(), shared_.end());
  holders_.erase(found);
  Narrow();
}

ProcessorShare CpuSets::ShareOf(const std::string& id) const {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return {shared_, false};
  const Holder& holder = found->second;
  if (!holder.own.empty()) return {holder.own, true};
  return {holder.most == 0 ? shared_ : holder.narrowed, false};
}

std::string FormatProcessors(const std::vector<int>& processors) {
  std::string text;
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", processors[i]);
    if (last > i) absl::StrAppend(&text, "-", processors[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace weft::platform
