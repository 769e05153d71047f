// SPDX-License-Identifier: Apache-2.0
// `weft scheduler`: places the pods of a cluster that name it.
#include "apps/scheduler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

#include "absl/strings/str_join.h"

#include "apps/command.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "net/yaml.h"
#include "platform/resources/placement.h"
#include "platform/scheduling/order.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

constexpr uint64_t kMostQueueBytes = 4 << 20;

struct SchedulerFlags {
  ClusterFlags cluster;
  SchedulingFlags scheduling;
  std::vector<std::string> names = {kSchedulerName};
  int parallel_calls = 32;
};

Status RunScheduler(const SchedulerFlags& flags) {
  const sigset_t signals = HoldBackSignals();
  RealClock clock;
  platform::PodScheduler::Options options;
  WEFT_RETURN_IF_ERROR(ReadSchedulingFlags(flags.scheduling, &options));
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags.cluster));
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  WEFT_RETURN_IF_ERROR(Annotate(store->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", access.server)));
  options.store = store.get();
  options.clock = &clock;
  options.scheduler_names = {flags.names.begin(), flags.names.end()};
  options.parallel_calls = flags.parallel_calls;
  WEFT_ASSIGN_OR_RETURN(const auto scheduler, platform::PodScheduler::Create(std::move(options)));
  scheduler->Start();
  WEFT_LOG(INFO) << "Pods at " << access.server << " with schedulerName "
                 << absl::StrJoin(flags.names, " or ") << " are placed";
  int signal = 0;
  ::sigwait(&signals, &signal);
  return absl::OkStatus();
}

}  // namespace

void AddSchedulingFlags(CLI::App* command, SchedulingFlags* flags) {
  command
      ->add_option("--order", flags->order,
                   "Who goes first: " + absl::StrJoin(platform::OrderNames(), ", "))
      ->capture_default_str()
      ->check(CLI::IsMember(platform::OrderNames()));
  command
      ->add_option("--placement", flags->placement,
                   "On which node: " + absl::StrJoin(platform::PlacementNames(), ", "))
      ->capture_default_str()
      ->check(CLI::IsMember(platform::PlacementNames()));
  command->add_option(
      "--queues", flags->queues,
      "File with the queues: a list of {name, cohort, weight, quota, borrowingLimit}");
}

Status ReadSchedulingFlags(const SchedulingFlags& flags, platform::PodScheduler::Options* options) {
  options->order = flags.order;
  options->placement = flags.placement;
  if (flags.queues.empty()) return absl::OkStatus();
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, flags.queues, kMostQueueBytes));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYamlOrJson(text, flags.queues));
  if (documents.size() > 1) {
    return InvalidArgument(flags.queues, ":", documents[1].position().line,
                           ": a second document begins here, one list of queues is allowed");
  }
  const Json list = documents.empty() ? Json::MakeArray() : documents.front();
  WEFT_ASSIGN_OR_RETURN(options->queues, platform::ReadQueues(list, flags.queues));
  return absl::OkStatus();
}

void AddScheduler(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "scheduler", "Place the pods of a cluster that name it as their scheduler");
  const auto flags = std::make_shared<SchedulerFlags>();
  AddClusterFlags(command, &flags->cluster);
  AddSchedulingFlags(command, &flags->scheduling);
  command->add_option("--name", flags->names, "spec.schedulerName of its pods; may be repeated")
      ->capture_default_str();
  command->add_option("--parallel_calls", flags->parallel_calls, "Pods that are bound together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  SetAction(command, action, [flags] { return RunScheduler(*flags); });
}

}  // namespace weft::apps
