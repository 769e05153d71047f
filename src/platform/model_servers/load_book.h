// SPDX-License-Identifier: Apache-2.0
// What the servers of one ModelServer were seen to do.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"

#include "platform/model_servers/server_page.h"

namespace weft::platform {

// Not thread-safe.
class LoadBook {
 public:
  // What a pod said now.
  void Note(const std::string& pod, const std::string& revision, ServerCounts counts,
            absl::Time now);
  // The others have gone.
  void Keep(const std::set<std::string>& pods);

  // How many requests were at a pod between its last two notes, on average; none without two.
  std::optional<double> RequestsAt(const std::string& pod) const;

  // From now on Watched counts anew, unless it does so under this name already.
  void BeginWatch(const std::string& name);
  // Of all pods of the revision, since the watch began. Of pods that came since, and after a start
  // of the controller, all that they counted.
  ServerCounts Watched(const std::string& revision) const;

 private:
  struct Entry {
    std::string revision;
    ServerCounts last, base;
    absl::Time noted, noted_before;
    int64_t micros_between = 0;
    int notes = 0;
  };
  std::map<std::string, Entry> pods_;  // by uid
  std::string watch_;
};

}  // namespace weft::platform
