// SPDX-License-Identifier: Apache-2.0
// What the kinds of training jobs share: names, checks, and what a status holds.
#pragma once

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/names.h"

namespace weft::platform {

// Services get the job's name.
NameProblems JobNameProblems(absl::string_view name);

// As ParseTfJob reads it, with an image for each container; `old` may be null.
void CheckTrainingJob(const Json* old, const Json& job, Problems* problems);

// A schema written in YAML; with the status of a job added to it.
Json ReadSchema(absl::string_view yaml);
Json ReadJobSchema(absl::string_view yaml);

}  // namespace weft::platform
