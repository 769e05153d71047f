// SPDX-License-Identifier: Apache-2.0
// What a pod, or the template of a job's pods, may ask of weft by annotations, and what weft notes
// there.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

inline constexpr char kAnnotationPrefix[] = "weft.dev/";
// How long it runs, "90m", "2h30m" or seconds. For schedulers; it is not ended by it.
inline constexpr char kDurationAnnotation[] = "weft.dev/duration";
inline constexpr char kGpuModelAnnotation[] = "weft.dev/gpu-model";  // "T4,A10"
// How many processors the pods of a job have to themselves: "2".
inline constexpr char kJobProcessorsAnnotation[] = "weft.dev/job-processors";
// What it got, by index: "0,3". Written when it is bound.
inline constexpr char kGpuIndicesAnnotation[] = "weft.dev/gpu-indices";
// On a pod that runs several tasks: "worker-0,ps-0,worker-1", whose name the first one gives it.
inline constexpr char kTasksAnnotation[] = "weft.dev/tasks";
// By whoever sees what it prints: {"step": 120, "steps": 600, "loss": 0.25, "secondsLeft": 34,
// "time": "..."}. All but step may be missing.
inline constexpr char kProgressAnnotation[] = "weft.dev/progress";

// What is said of one that is not among `known`, with the nearest name.
std::string NoSuchAnnotation(const std::string& name, const std::vector<std::string>& known);

// In seconds, more than none. InvalidArgument says what is allowed.
StatusOr<double> ParseRunLength(absl::string_view text);

// Those of weft in `metadata`, which stands at `path`. What `old`, the metadata before, held
// already is let be; it may be null.
void CheckPodAnnotations(const Json* old, const Json& metadata, const std::string& path,
                         Problems* problems);

}  // namespace weft::platform
