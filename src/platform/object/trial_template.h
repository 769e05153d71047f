// SPDX-License-Identifier: Apache-2.0
// From the template of an experiment to the object that a trial runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/experiment.h"

namespace weft::platform {

inline constexpr char kExperimentLabel[] = "katib.kubeflow.org/experiment";
inline constexpr char kTrialLabel[] = "katib.kubeflow.org/trial";

struct TrialIdentity {
  std::string experiment;
  std::string name;
  std::string namespace_name;
};

using Assignments = std::vector<std::pair<std::string, std::string>>;  // names and values

// The object with the trial's name, its values in the place of the placeholders of both forms, and
// labels by which its pods are found. `text` is the template where it stands in a config map.
// InvalidArgument says what of the template makes no sense.
StatusOr<Json> MakeRunObject(const TrialTemplate& trial_template, absl::string_view text,
                             const TrialIdentity& identity, const Assignments& assignments);

// Each template of pods in an object (in a Job one, in a TFJob one for each type), or the object
// itself when it is a pod.
std::vector<Json*> PodTemplatesOf(Json* object);

// The container whose metrics count: `wanted`, or else the only one, or the one named tensorflow.
// Null when there is none.
Json* PrimaryContainer(Json* pod_template, absl::string_view wanted);

// What files and events need, since nothing runs beside the program: its container's command goes
// through a shell that prints them, after the program, between marks. InvalidArgument when the
// container has no command.
Status PrintFilesAtEnd(const MetricsCollector& collector, absl::string_view primary_container,
                       Json* object);
// What stands between those marks in an output; the whole where there are none.
absl::string_view PrintedFiles(absl::string_view output);

}  // namespace weft::platform
