// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/task_pack.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weft::platform {
namespace {

constexpr ReplicaType kTypes[] = {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kWorker,
                                  ReplicaType::kPs, ReplicaType::kEvaluator};

}  // namespace

std::string NameOfTask(const TaskId& task) {
  return absl::StrCat(ReplicaTypeName(task.type), "-", task.index);
}

std::string FormatPack(const TaskPack& pack) {
  return absl::StrJoin(pack, ",", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, NameOfTask(task));
  });
}

TaskPack ParsePack(absl::string_view text) {
  TaskPack pack;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('-', 1));
    const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](ReplicaType t) {
      return ReplicaTypeName(t) == parts.first;
    });
    int64_t index = -1;
    if (type == std::end(kTypes) || !absl::SimpleAtoi(parts.second, &index) || index < 0) return {};
    pack.push_back({*type, index});
  }
  return pack;
}

const TaskPack* FindPack(const std::vector<TaskPack>& packs, const TaskId& task) {
  for (const TaskPack& pack : packs) {
    if (std::find(pack.begin(), pack.end(), task) != pack.end()) return &pack;
  }
  return nullptr;
}

bool ArePacksOf(const TfJob& job, const std::vector<TaskPack>& packs) {
  return std::all_of(packs.begin(), packs.end(), [&](const TaskPack& pack) {
    return pack.size() > 1 && std::all_of(pack.begin(), pack.end(), [&](const TaskId& task) {
             const ReplicaSpec* const replica = job.Find(task.type);
             return replica != nullptr && task.index < replica->replicas;
           });
  });
}

}  // namespace weft::platform
