// SPDX-License-Identifier: Apache-2.0
// Which objects the words of a command mean.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "base/status.h"
#include "platform/console/commands.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Objects of one type; no names: all that the selection's selector says.
struct Group {
  const ResourceType* type = nullptr;
  std::vector<std::string> names;
};

// What went wrong with some of several objects; the others are seen to all the same.
class Failures {
 public:
  // False: there is no use in trying the others.
  bool Add(const Status& status) {
    if (status.ok()) return true;
    if (first_.ok()) first_ = status;
    messages_.emplace_back(status.message());
    return !absl::IsUnavailable(status) && !absl::IsUnauthenticated(status) &&
           !absl::IsCancelled(status);
  }
  bool empty() const { return messages_.empty(); }
  Status ToStatus() const {
    return messages_.size() < 2 ? first_ : Status(first_.code(), absl::StrJoin(messages_, "\n"));
  }

 private:
  Status first_;
  std::vector<std::string> messages_;
};

struct Target {
  const ResourceType* type = nullptr;
  ObjectName name;
};

// By what people type; InvalidArgument names what is like it.
StatusOr<const ResourceType*> TypeOfWord(const std::string& word);
// "tfjob digits other", "tfjob/digits pod/x", "pods,services"
StatusOr<std::vector<Group>> GroupsOf(const std::vector<std::string>& words);
// The namespace of such objects; empty where they have none.
std::string SpaceOf(const Console& console, const ResourceType& type);
// Those that are there.
std::vector<ObjectPtr> Fetch(const Console& console, const Group& group, const Selection& selection,
                             Failures* failures);
// Of files, or of words; all of a type only when that is said.
StatusOr<std::vector<Target>> TargetsOf(const Console& console, const Selection& selection);

}  // namespace weft::platform
