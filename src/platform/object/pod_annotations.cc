// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_annotations.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "base/nearest_name.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/own_address.h"

namespace weft::platform {
namespace {

const std::vector<std::string>& KnownPodAnnotations() {
  static const auto* const names = new std::vector<std::string>{
      kDurationAnnotation,   kGpuModelAnnotation, kJobProcessorsAnnotation,
      kGpuIndicesAnnotation, kTasksAnnotation,    kProgressAnnotation,
      kOwnAddressAnnotation, kTrialAnnotation};  // of a pod that is a trial by itself
  return *names;
}

// Empty: it may stand so.
std::string ProblemOfValue(const std::string& name, const std::string& text) {
  if (name == kDurationAnnotation) {
    const StatusOr<double> seconds = ParseRunLength(text);
    return seconds.ok() ? "" : std::string(seconds.status().message());
  }
  if (name == kJobProcessorsAnnotation) {
    int32_t count = 0;
    if (absl::SimpleAtoi(text, &count) && count > 0) return "";
    return HoldsButAllowed(Json(text), "a number of processors such as \"1\" is allowed");
  }
  if (name == kOwnAddressAnnotation && text != "true" && text != "false")
    return HoldsButAllowed(Json(text), "\"true\" and \"false\" are allowed");
  if (name == kTrialAnnotation) {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= 1) return "";
    return HoldsButAllowed(Json(text), "the number of a trial is allowed, as in \"3\"");
  }
  if (name == kGpuModelAnnotation) {
    for (const absl::string_view model : absl::StrSplit(text, ',')) {
      if (model.find_first_not_of(' ') == absl::string_view::npos)
        return HoldsButAllowed(Json(text), "models of GPUs are allowed, as in \"T4,A10\"");
    }
  }
  return "";
}

std::string ProblemOfName(const std::string& name) {
  if (IsJobAnnotation(name)) {
    return "belongs to the job: write it in the job's own metadata.annotations";
  }
  return NoSuchAnnotation(name, KnownPodAnnotations());
}

}  // namespace

std::string NoSuchAnnotation(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty()
             ? absl::StrCat("there is no such annotation. Known are ", absl::StrJoin(known, ", "))
             : absl::StrCat("there is no such annotation. Did you mean '", nearest, "'?");
}

StatusOr<double> ParseRunLength(absl::string_view text) {
  double seconds = 0;
  absl::Duration duration;
  if (!absl::SimpleAtod(text, &seconds) && absl::ParseDuration(text, &duration))
    seconds = absl::ToDoubleSeconds(duration);
  if (seconds > 0 && std::isfinite(seconds)) return seconds;
  return InvalidArgument(HoldsButAllowed(
      Json(text), "a length of time is allowed, as in \"90m\", \"2h30m\" or, in seconds, \"600\""));
}

void CheckPodAnnotations(const Json* old, const Json& metadata, const std::string& path,
                         Problems* problems) {
  const Json* const annotations = FindField(metadata, {"annotations"});
  if (annotations == nullptr) return;
  const std::vector<std::string>& known = KnownPodAnnotations();
  for (const JsonMember& member : annotations->members()) {
    if (!absl::StartsWith(member.name, kAnnotationPrefix)) continue;
    const Json* const held =
        old == nullptr ? nullptr : FindField(*old, {"annotations", member.name});
    if (held != nullptr && *held == member.value) continue;
    const bool is_known = std::find(known.begin(), known.end(), member.name) != known.end();
    const std::string problem =
        is_known ? ProblemOfValue(member.name, member.value.AsString().value_or(""))
                 : ProblemOfName(member.name);
    if (!problem.empty())
      problems->Add(member.value, absl::StrCat(path, ".annotations[\"", member.name, "\"]"),
                    problem);
  }
}

}  // namespace weft::platform
