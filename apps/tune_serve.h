// SPDX-License-Identifier: Apache-2.0
// `weft tune --serve`: a study for programs of other languages, a JSON object a line on stdin and
// stdout.
#pragma once

#include "platform/search/study.h"
#include "platform/search/study_journal.h"

namespace weft::apps {

// {"ask": 3}                       {"trials": [{"trial": 0, "values": {"lr": "0.1"}}], "state":
// "ok"}
//                                  state is "wait" while trials have to end first, "end" when there
//                                  is nothing left to try
// {"tell": 0, "value": 0.9}        {}          also "values": [..] and "violation": 0.5
// {"fail": 0}                      {}
// {"best": true}                   {"trial": 0, "value": 0.9, "values": {...}}, {} before there is
// one
// {"front": true}                  {"trials": [0, 3]}
// {"trials": true}                 {"trials": [{"trial", "values", "state", "value"}]}
//
// What was not understood is answered with {"error": "..."}. Until stdin ends.
Status ServeStudy(platform::Study* study, platform::StudyJournal* journal);

}  // namespace weft::apps
