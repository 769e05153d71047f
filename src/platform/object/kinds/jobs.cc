// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/job_policies.h"
#include "platform/object/kind_spec.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/object_time.h"
#include "platform/object/workload_checks.h"

namespace weft::platform::kinds::jobs {
namespace {

constexpr char kControllerUid[] = "batch.kubernetes.io/controller-uid";

// Its pods are found by the job's uid, which nobody else can choose.
void DefaultJob(const Json* old, const std::string& /*version*/, Json* object) {
  DefaultWorkload(old, object);
  const bool has_completions = FindField(*object, {"spec", "completions"}) != nullptr;
  const bool has_parallelism = FindField(*object, {"spec", "parallelism"}) != nullptr;
  if (!has_completions && !has_parallelism) SetDefault(object, {"spec", "completions"}, 1);
  SetDefault(object, {"spec", "parallelism"}, 1);
  DefaultJobPolicies(object);
  SetDefault(object, {"spec", "completionMode"}, "NonIndexed");
  SetDefault(object, {"spec", "backoffLimit"}, 6);
  SetDefault(object, {"spec", "suspend"}, false);
  SetDefault(object, {"spec", "podReplacementPolicy"}, "TerminatingOrFailed");
  SetDefault(object, {"spec", "manualSelector"}, false);
  if (BoolField(*object, {"spec", "manualSelector"})) return;
  const std::string uid = UidOf(*object);
  for (const auto& [key, value] : {std::pair<const char*, std::string>{kControllerUid, uid},
                                   {"batch.kubernetes.io/job-name", NameOf(*object)},
                                   {"controller-uid", uid},
                                   {"job-name", NameOf(*object)}}) {
    SetDefault(object, {"spec", "template", "metadata", "labels", key}, value);
  }
  SetDefault(object, {"spec", "selector", "matchLabels", kControllerUid}, uid);
}

void CheckSpecWord(const Json& object, const char* field, const std::vector<std::string>& allowed,
                   Problems* problems) {
  if (const Json* const spec = FindField(object, {"spec"}))
    CheckWord(*spec, "spec", field, allowed, problems);
}

void CheckJob(const Json* old, const Json& object, Problems* problems) {
  for (const char* field : {"parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
                            "ttlSecondsAfterFinished"})
    CheckCount(object, field, problems);
  CheckSelectorFits(object, "job", problems);
  const std::string mode = StringField(object, {"spec", "completionMode"});
  if (mode != "NonIndexed" && mode != "Indexed")
    problems->Unsupported(object, "spec.completionMode", mode, {"NonIndexed", "Indexed"});
  const bool is_indexed = mode == "Indexed";
  CheckSpecWord(object, "podReplacementPolicy", {"Failed", "TerminatingOrFailed"}, problems);
  const std::string manager = StringField(object, {"spec", "managedBy"});
  if (!manager.empty() && !absl::StrContains(manager, '/')) {
    problems->Invalid(object, "spec.managedBy", manager,
                      "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  if (is_indexed && FindField(object, {"spec", "completions"}) == nullptr) {
    problems->Required(object, "spec.completions", "when completion mode is Indexed");
  }
  CheckJobPolicies(object, problems);
  CheckTemplatePod(object, problems);
  if (StringField(object, {"spec", "template", "spec", "restartPolicy"}) == "Always") {
    problems->Required(object, "spec.template.spec.restartPolicy",
                       "valid values: \"OnFailure\", \"Never\"");
  }
  if (old == nullptr) return;
  CheckFixed(*old, object, "selector", problems);
  CheckFixed(*old, object, "completionMode", problems);
  if (!is_indexed) CheckFixed(*old, object, "completions", problems);
  if (!BoolField(*old, {"spec", "suspend"})) CheckFixed(*old, object, "template", problems);
}

Json StatusCell(const Json& job, absl::Time /*now*/) {
  if (IsTerminating(job)) return "Terminating";
  for (const char* type : {"Complete", "Failed", "Suspended", "FailureTarget"}) {
    if (IsConditionTrue(job, type)) return type;
  }
  return "Running";
}

Json CompletionsCell(const Json& job, absl::Time /*now*/) {
  const Json* const wanted = FindField(job, {"spec", "completions"});
  const int64_t parallelism = IntField(job, {"spec", "parallelism"});
  const std::string of = wanted != nullptr ? absl::StrCat(wanted->AsInt().value_or(0))
                         : parallelism > 1 ? absl::StrCat("1 of ", parallelism)
                                           : "1";
  return absl::StrCat(IntField(job, {"status", "succeeded"}), "/", of);
}

Json DurationCell(const Json& job, absl::Time now) {
  const absl::Time began = ParseObjectTime(StringField(job, {"status", "startTime"}));
  const absl::Time ended = ParseObjectTime(StringField(job, {"status", "completionTime"}));
  if (began == absl::InfinitePast()) return "";
  return HumanDuration((ended == absl::InfinitePast() ? now : ended) - began);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("batch", "v1", "jobs", "Job")
      .Categories({"all"})
      .HasStatus()
      .Defaults(&DefaultJob)
      .Check(&CheckJob)
      .Column("Status", &StatusCell)
      .Column("Completions", &CompletionsCell)
      .Column("Duration", &DurationCell)
      .Age()
      .Wide("Containers", &ContainersCell)
      .Wide("Images", &ImagesCell)
      .Wide("Selector", &SelectorCell);
}

}  // namespace weft::platform::kinds::jobs
