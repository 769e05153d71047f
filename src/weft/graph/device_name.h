// SPDX-License-Identifier: Apache-2.0
// Device names: "/job:ps/replica:0/task:1/device:CPU:0", whole or in part.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

// Parts that are absent say nothing. `type` is upper case.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> index;

  // Accepts "/job:j/replica:r/task:t/device:CPU:0", the old "/cpu:0" and "/gpu:1" forms, "*" for a
  // part, and any order. InvalidArgument names the text.
  static StatusOr<DeviceName> Parse(absl::string_view text);
  std::string ToString() const;
  bool IsFull() const { return job && replica && task && type && index; }
  // True if `full` has every part that this name gives.
  bool Matches(const DeviceName& full) const;
  // Parts of `other` fill the gaps; InvalidArgument where both give different ones, unless
  // `soft`, when type and index of this name win.
  StatusOr<DeviceName> MergedWith(const DeviceName& other, bool soft = false) const;
  // "/job:j/replica:r/task:t" of a name that has these.
  std::string TaskName() const;
  bool SameTask(const DeviceName& other) const {
    return job == other.job && replica == other.replica && task == other.task;
  }
  bool operator==(const DeviceName&) const = default;
};

}  // namespace weft
