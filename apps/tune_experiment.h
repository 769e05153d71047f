// SPDX-License-Identifier: Apache-2.0
// An Experiment's file as a search on this machine.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/search/local_trials.h"
#include "platform/search/study.h"

namespace weft::apps {

struct LocalExperiment {
  platform::SearchSpace space;
  platform::StudyOptions study;
  platform::LocalTrialsOptions trials;  // but for the folder
  Json header;                          // what must be the same when the search goes on
};

// Reads the one Experiment of a file. Its trials run as `weft run` runs a job, or as the program of
// the primary container where the template is something else. `folder` is where files of trials
// lie.
StatusOr<LocalExperiment> ReadLocalExperiment(const std::string& file, const std::string& folder);

}  // namespace weft::apps
