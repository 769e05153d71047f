// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/device_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace weft {
namespace {

bool IsJobName(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text.front()))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
}

// A number or "*"; false if neither.
bool ParseIndex(absl::string_view text, std::optional<int>* index) {
  if (text == "*") return true;
  int value = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &value)) {
    return false;
  }
  *index = value;
  return true;
}

bool ParseType(absl::string_view text, std::optional<std::string>* type) {
  if (text == "*") return true;
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text.front()))) return false;
  *type = absl::AsciiStrToUpper(text);
  return true;
}

bool ParsePart(absl::string_view part, DeviceName* name) {
  const std::vector<absl::string_view> pieces = absl::StrSplit(part, ':');
  const absl::string_view key = pieces[0];
  if (key == "job" && pieces.size() == 2) {
    if (pieces[1] == "*") return true;
    if (!IsJobName(pieces[1])) return false;
    name->job = std::string(pieces[1]);
    return true;
  }
  if (key == "replica" && pieces.size() == 2) return ParseIndex(pieces[1], &name->replica);
  if (key == "task" && pieces.size() == 2) return ParseIndex(pieces[1], &name->task);
  if (key == "device" && pieces.size() == 2) {
    return ParseType(pieces[1], &name->type);
  }
  if (key == "device" && pieces.size() == 3) {
    return ParseType(pieces[1], &name->type) && ParseIndex(pieces[2], &name->index);
  }
  const std::string lower = absl::AsciiStrToLower(key);
  if ((lower == "cpu" || lower == "gpu") && pieces.size() == 2) {
    name->type = absl::AsciiStrToUpper(key);
    return ParseIndex(pieces[1], &name->index);
  }
  return false;
}

template <typename T>
bool Fits(const std::optional<T>& wanted, const std::optional<T>& actual) {
  return !wanted || wanted == actual;
}

template <typename T>
bool Merge(std::optional<T>* mine, const std::optional<T>& theirs) {
  if (!*mine) {
    *mine = theirs;
    return true;
  }
  return !theirs || *mine == theirs;
}

}  // namespace

StatusOr<DeviceName> DeviceName::Parse(absl::string_view text) {
  DeviceName name;
  if (text.empty()) return name;
  const auto bad = [&] {
    return InvalidArgument("Malformed device specification '", text,
                           "', expected something like /job:ps/replica:0/task:0/device:CPU:0");
  };
  if (text.front() != '/') return bad();
  for (absl::string_view part : absl::StrSplit(text.substr(1), '/')) {
    if (part.empty() || !ParsePart(part, &name)) return bad();
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string out;
  if (job) absl::StrAppend(&out, "/job:", *job);
  if (replica) absl::StrAppend(&out, "/replica:", *replica);
  if (task) absl::StrAppend(&out, "/task:", *task);
  if (type || index) {
    absl::StrAppend(&out, "/device:", type.value_or("*"), ":", index ? absl::StrCat(*index) : "*");
  }
  return out;
}

bool DeviceName::Matches(const DeviceName& full) const {
  return Fits(job, full.job) && Fits(replica, full.replica) && Fits(task, full.task) &&
         Fits(type, full.type) && Fits(index, full.index);
}

StatusOr<DeviceName> DeviceName::MergedWith(const DeviceName& other, bool soft) const {
  DeviceName merged = *this;
  bool ok = Merge(&merged.job, other.job) && Merge(&merged.replica, other.replica) &&
            Merge(&merged.task, other.task);
  const bool same_device = Merge(&merged.type, other.type) && Merge(&merged.index, other.index);
  if (ok && (same_device || soft)) return merged;
  return InvalidArgument("Cannot merge devices '", ToString(), "' and '", other.ToString(), "'");
}

std::string DeviceName::TaskName() const {
  DeviceName only = *this;
  only.type.reset();
  only.index.reset();
  return only.ToString();
}

}  // namespace weft
