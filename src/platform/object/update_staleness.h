// SPDX-License-Identifier: Apache-2.0
// How far the workers of a job are apart: how many updates of others come between what a worker
// reads and its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::platform {

// Over a time, of one parameter server or of several.
struct UpdateStaleness {
  int64_t updates = 0;
  double mean = 0;
  int64_t highest = 0;

  // From the log of a server: "... Staleness of 240 updates: mean 1.25, highest 4". Nothing when
  // the line is none.
  static std::optional<UpdateStaleness> FromLine(absl::string_view line);
  // What Describe has made; nothing where it makes no sense.
  static std::optional<UpdateStaleness> FromJson(const Json& json);

  void Add(const UpdateStaleness& other);
  Json Describe() const;  // {"mean": 1.25, "highest": 4, "updates": 240}
};

// What the tasks of a pod have told last.
class ToldStaleness {
 public:
  // True if the line tells any. Those of several processes begin with a name, as `weft exec` prints
  // them: "[ps-0] ...".
  bool Hear(absl::string_view line);
  bool empty() const { return by_task_.empty(); }
  Json Describe() const;  // of all of them

 private:
  std::map<std::string, UpdateStaleness> by_task_;
};

}  // namespace weft::platform
