// SPDX-License-Identifier: Apache-2.0
// Algorithms of others: services that speak Katib's Suggestion interface, as its images do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/object/experiment.h"
#include "platform/object/trial_template.h"
#include "platform/store/object_store.h"
#include "platform/tuning/katib_channel.h"

namespace weft::platform {

// Thread-safe.
class SuggestionServices {
 public:
  struct Suggested {
    Assignments assignments;
    std::vector<std::pair<std::string, std::string>> labels;  // for the trial
  };

  // Words are "ALGORITHM=HOST:PORT". InvalidArgument names the word that is none.
  static StatusOr<std::unique_ptr<SuggestionServices>> Create(
      const std::vector<std::string>& words);

  bool Has(const std::string& algorithm) const { return channels_.count(algorithm) > 0; }

  // What to try next: `wanted` of them, after `count`; fewer when the service has no more now.
  // `trials` are those of the experiment by their numbers. Blocks for half a minute at most.
  StatusOr<std::vector<Suggested>> Ask(const Experiment& experiment,
                                       const std::map<int64_t, ObjectPtr>& trials, int64_t count,
                                       int64_t wanted) const;

 private:
  SuggestionServices() = default;
  std::map<std::string, std::unique_ptr<KatibChannel>> channels_;
};

}  // namespace weft::platform
