// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/restart.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "platform/jobs/tfjob_controller.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform::simulation {
namespace {

constexpr char kJob[] = R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{},"spec":{
  "tfReplicaSpecs":{
    "Chief":{"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}},
    "PS":{"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}},
    "Worker":{"replicas":2,
              "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})";

std::unique_ptr<TfJobController> MakeController(ObjectStore* store, const Clock* clock) {
  TfJobController::Options options;
  options.store = store;
  options.clock = clock;
  return std::make_unique<TfJobController>(options);
}

void Work(TfJobController* controller) {
  controller->Maintain();
  while (controller->Step()) {
  }
}

Status RunAllPods(EmbeddedStore* store, int64_t* count) {
  WEFT_ASSIGN_OR_RETURN(const ObjectList pods, store->List(Pods(), {}));
  *count = static_cast<int64_t>(pods.items.size());
  WriteOptions options;
  options.subresource = "status";
  for (const ObjectPtr& item : pods.items) {
    Json pod = *item;
    SetField(&pod, {"status", "phase"}, "Running");
    WEFT_RETURN_IF_ERROR(store->Update(Pods(), std::move(pod), options).status());
  }
  return absl::OkStatus();
}

// Each write is a revision.
StatusOr<int64_t> RevisionOf(EmbeddedStore* store) {
  WEFT_ASSIGN_OR_RETURN(const ObjectList list, store->List(Nodes(), {}));
  int64_t revision = 0;
  if (!absl::SimpleAtoi(list.revision, &revision)) return Internal("a revision is no number");
  return revision;
}

}  // namespace

StatusOr<RestartFigures> MeasureRestart(int jobs) {
  FakeClock clock(absl::FromUnixSeconds(1700000000));
  EmbeddedStore::Options options;
  options.clock = &clock;
  WEFT_ASSIGN_OR_RETURN(const auto store, EmbeddedStore::Open(std::move(options)));
  WEFT_ASSIGN_OR_RETURN(const Json job, Json::Parse(kJob));
  for (int i = 0; i < jobs; ++i) {
    Json named = job;
    SetField(&named, {"metadata", "name"}, absl::StrCat("job-", i));
    WEFT_RETURN_IF_ERROR(store->Create(TfJobs(), "default", std::move(named), {}).status());
  }
  RestartFigures figures;
  {
    const auto first = MakeController(store.get(), &clock);
    Work(first.get());
    WEFT_RETURN_IF_ERROR(RunAllPods(store.get(), &figures.pods));
    Work(first.get());
  }
  if (figures.pods != 4 * int64_t{jobs}) return Internal(figures.pods, " pods were made");
  WEFT_ASSIGN_OR_RETURN(const int64_t revision, RevisionOf(store.get()));
  const absl::Time start = absl::Now();
  const auto second = MakeController(store.get(), &clock);
  Work(second.get());
  figures.time = absl::Now() - start;
  WEFT_ASSIGN_OR_RETURN(const int64_t after, RevisionOf(store.get()));
  figures.writes = after - revision;
  return figures;
}

}  // namespace weft::platform::simulation
