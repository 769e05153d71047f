// SPDX-License-Identifier: Apache-2.0
#include "platform/object/job_annotations.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

const std::vector<std::string>& KnownAnnotations() {
  static const auto* const names = new std::vector<std::string>{kTaskFlagsAnnotation,
                                                                kTrialAnnotation,
                                                                kRestartAnnotation,
                                                                kTensorBoardAnnotation,
                                                                kTensorBoardImageAnnotation,
                                                                kTaskSecurityAnnotation,
                                                                kInsecureClientsAnnotation,
                                                                kPackingAnnotation,
                                                                kCostsAnnotation};
  return *names;
}

std::string PathOf(absl::string_view name) {
  return absl::StrCat("metadata.annotations[\"", name, "\"]");
}

void ReadPacking(const JsonMember& member, const std::string& text, Problems* problems,
                 JobExtras* extras) {
  if (text == "auto") {
    extras->packing = Packing::kAuto;
  } else if (text == "node") {
    extras->packing = Packing::kNode;
  } else if (text != "never") {
    problems->Add(member.value, PathOf(member.name),
                  HoldsButAllowed(member.value, "\"auto\", \"node\" and \"never\" are allowed"));
  }
}

// A number, or a quantity such as "50Mi".
bool ReadCost(const Json& value, double* out) {
  const StatusOr<double> number = value.AsDouble();
  if (number.ok()) {
    *out = *number;
  } else {
    const StatusOr<int64_t> thousandths = ParseQuantity(value);
    if (!thousandths.ok()) return false;
    *out = static_cast<double>(*thousandths) / 1000;
  }
  return *out > 0 && *out < 1e18;
}

void ReadCosts(const JsonMember& member, const std::string& text, Problems* problems,
               JobExtras* extras) {
  const Json costs = Json::Parse(text, {.max_bytes = 4096, .max_depth = 4}).value_or(Json());
  bool is_good = costs.is_object();
  TaskCosts* const to = &extras->costs;
  for (const JsonMember& cost : costs.members()) {
    double* const field = cost.name == "stepSeconds"             ? &to->step_seconds
                          : cost.name == "bytesPerStep"          ? &to->bytes_per_step
                          : cost.name == "networkBytesPerSecond" ? &to->network
                                                                 : nullptr;
    is_good = is_good && field != nullptr && ReadCost(cost.value, field);
  }
  if (is_good) return;
  problems->Add(member.value, PathOf(member.name),
                HoldsButAllowed(member.value,
                                "a mapping of stepSeconds, bytesPerStep and networkBytesPerSecond "
                                "to more than 0 is allowed, as in {\"stepSeconds\": 0.02, "
                                "\"bytesPerStep\": \"50Mi\"}"));
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
  } else if (member.name == kTaskSecurityAnnotation) {
    bool is_insecure = false;
    choose("tls", "insecure", &is_insecure);
    extras->security = is_insecure ? TaskSecurity::kInsecure : TaskSecurity::kTls;
  } else if (member.name == kInsecureClientsAnnotation) {
    ReadClients(member.value, path, text, problems, extras);
  } else if (member.name == kPackingAnnotation) {
    ReadPacking(member, text, problems, extras);
  } else if (member.name == kCostsAnnotation) {
    ReadCosts(member, text, problems, extras);
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

std::string ProblemOfJobAnnotation(const std::string& name) {
  if (name == kDurationAnnotation || name == kGpuModelAnnotation ||
      name == kJobProcessorsAnnotation)
    return "belongs to pods: write it in the template's metadata.annotations";
  return NoSuchAnnotation(name, KnownAnnotations());
}

}  // namespace

bool IsJobAnnotation(absl::string_view name) {
  const std::vector<std::string>& known = KnownAnnotations();
  return std::find(known.begin(), known.end(), name) != known.end();
}

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

void ReadClients(const Json& at, const std::string& path, const std::string& labels,
                 Problems* problems, JobExtras* extras) {
  for (const absl::string_view word : absl::StrSplit(labels, ',')) {
    const std::pair<std::string, std::string> label = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(label.first));
    if (name.empty() || !absl::StrContains(word, '=')) {
      problems->Add(
          at, path,
          HoldsButAllowed(at, "labels of pods are allowed, as in \"app=notebook,team=a\""));
      return;
    }
    extras->insecure_clients.emplace_back(name, absl::StripAsciiWhitespace(label.second));
  }
}

void CheckClients(const Json& at, const std::string& path, const std::string& security,
                  const JobExtras& extras, Problems* problems) {
  if (extras.insecure_clients.empty() || extras.security == TaskSecurity::kInsecure) return;
  problems->Add(at, path,
                absl::StrCat("stands alone: ", security,
                             " has to be \"insecure\", which lets clients without TLS in"));
}

void ReadJobAnnotations(const Json& metadata, Problems* problems, JobExtras* extras) {
  const Json* const annotations = FindField(metadata, {"annotations"});
  if (annotations == nullptr) return;
  TensorBoardSpec board;
  for (const JsonMember& member : annotations->members()) {
    if (!absl::StartsWith(member.name, kAnnotationPrefix)) continue;
    if (IsJobAnnotation(member.name)) {
      ReadOne(member, problems, extras, &board);
      continue;
    }
    problems->Add(member.value, PathOf(member.name), ProblemOfJobAnnotation(member.name));
  }
  CheckClients(*annotations, PathOf(kInsecureClientsAnnotation), kTaskSecurityAnnotation, *extras,
               problems);
  if (!board.folder.empty()) {
    extras->tensorboard = board;
  } else if (!board.image.empty()) {
    problems->Add(
        *annotations, PathOf(kTensorBoardImageAnnotation),
        absl::StrCat("stands alone: ", kTensorBoardAnnotation, " names the folder that it shows"));
  }
}

}  // namespace weft::platform
