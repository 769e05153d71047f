// SPDX-License-Identifier: Apache-2.0
#include "platform/object/job_annotations.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/nearest_name.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

const std::vector<std::string>& KnownAnnotations() {
  static const auto* const names =
      new std::vector<std::string>{kTaskFlagsAnnotation, kTrialAnnotation, kRestartAnnotation,
                                   kTensorBoardAnnotation, kTensorBoardImageAnnotation};
  return *names;
}

std::string PathOf(absl::string_view name) {
  return absl::StrCat("metadata.annotations[\"", name, "\"]");
}

void ReadOne(const JsonMember& member, Problems* problems, JobExtras* extras,
             TensorBoardSpec* board) {
  const std::string path = PathOf(member.name);
  const std::string text = member.value.AsString().value_or("");
  const auto choose = [&](const char* no, const char* yes, bool* out) {
    if (text != no && text != yes) {
      problems->Add(member.value, path,
                    HoldsButAllowed(member.value,
                                    absl::StrCat("\"", no, "\" and \"", yes, "\" are allowed")));
    }
    *out = text == yes;
  };
  if (member.name == kTaskFlagsAnnotation) {
    choose("false", "true", &extras->has_task_flags);
  } else if (member.name == kRestartAnnotation) {
    choose("task", "job", &extras->restarts_whole);
  } else if (member.name == kTrialAnnotation) {
    extras->trial = text;
    CheckTrial(member.value, path, text, problems);
  } else if (member.name == kTensorBoardAnnotation) {
    board->folder = text;
    CheckFolder(member.value, path, text, problems);
  } else {
    board->image = text;
  }
}

}  // namespace

void CheckTrial(const Json& at, const std::string& path, const std::string& trial,
                Problems* problems) {
  int64_t number = 0;
  if (absl::SimpleAtoi(trial, &number) && number >= 1 && trial == absl::StrCat(number)) return;
  problems->Add(at, path,
                HoldsButAllowed(Json(trial),
                                "the number of a trial is allowed, as a text: \"1\", \"2\", ..."));
}

void CheckFolder(const Json& at, const std::string& path, const std::string& folder,
                 Problems* problems) {
  if (absl::StartsWith(folder, "/") && !absl::StrContains(absl::StrCat(folder, "/"), "/../"))
    return;
  problems->Add(
      at, path,
      HoldsButAllowed(Json(folder), "a folder from the root, as in \"/summary\", is allowed"));
}

void ReadJobAnnotations(const Json& metadata, Problems* problems, JobExtras* extras) {
  const Json* const annotations = FindField(metadata, {"annotations"});
  if (annotations == nullptr) return;
  TensorBoardSpec board;
  const std::vector<std::string>& known = KnownAnnotations();
  for (const JsonMember& member : annotations->members()) {
    if (!absl::StartsWith(member.name, kAnnotationPrefix)) continue;
    if (std::find(known.begin(), known.end(), member.name) != known.end()) {
      ReadOne(member, problems, extras, &board);
      continue;
    }
    const std::string nearest = NearestName(member.name, known);
    problems->Add(
        member.value, PathOf(member.name),
        nearest.empty()
            ? absl::StrCat("there is no such annotation. Known are ", absl::StrJoin(known, ", "))
            : absl::StrCat("there is no such annotation. Did you mean '", nearest, "'?"));
  }
  if (!board.folder.empty()) {
    extras->tensorboard = board;
  } else if (!board.image.empty()) {
    problems->Add(
        *annotations, PathOf(kTensorBoardImageAnnotation),
        absl::StrCat("stands alone: ", kTensorBoardAnnotation, " names the folder that it shows"));
  }
}

}  // namespace weft::platform
