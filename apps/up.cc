// SPDX-License-Identifier: Apache-2.0
// `weft up`: a control plane on this machine.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_split.h"

#include "apps/command.h"
#include "apps/page_port.h"
#include "apps/pods.h"
#include "apps/scheduler.h"
#include "apps/suggestion.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "platform/apiserver/api_server.h"
#include "platform/apiserver/kubeconfig_file.h"
#include "platform/apiserver/node_identity.h"
#include "platform/apiserver/server_identity.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/model_servers/model_server_kind.h"
#include "platform/object/fields.h"
#include "platform/pods/pod_executor.h"
#include "platform/pods/pod_reach.h"
#include "platform/resources/node_words.h"
#include "platform/scheduling/pod_scheduler.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/tuning/katib_server.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/tuning_controllers.h"
#include "platform/workloads/service_relay.h"
#include "platform/workloads/workload_controllers.h"

namespace weft::apps {
namespace {

constexpr absl::Duration kEventsStay = absl::Hours(1);  // as on a cluster
constexpr size_t kMostOutputBytes = size_t{64} << 20;   // of a trial
constexpr absl::Duration kGather = absl::Milliseconds(50);
constexpr int kParallelCalls = 8;  // pods of a job that are made together

struct UpFlags {
  std::string state;
  std::string kubeconfig;
  int port = 0;
  int page_port = 0;
  int threads = 2;
  std::vector<std::string> nodes;
  std::vector<std::string> node_kubeconfigs;
  std::vector<std::string> scheduler_names;
  std::vector<std::string> pass_env;
  SchedulingFlags scheduling;
  std::string katib_address;
  std::vector<std::string> suggestion_services;
};

// Nodes of the last run that this one does not have: nobody would run what is there.
Status RemoveOldNodes(const std::vector<Json>& nodes, platform::ObjectStore* store) {
  WEFT_ASSIGN_OR_RETURN(const platform::ObjectList known, store->List(platform::Nodes(), {}));
  for (const platform::ObjectPtr& node : known.items) {
    const std::string name = platform::NameOf(*node);
    bool stays = false;
    for (const Json& wanted : nodes) stays = stays || platform::NameOf(wanted) == name;
    // Machines that have joined give signs of life.
    const Json* const conditions = platform::FindField(*node, {"status", "conditions"});
    if (conditions != nullptr) {
      for (const Json& condition : conditions->items())
        stays = stays || condition.Find("lastHeartbeatTime") != nullptr;
    }
    if (!stays) WEFT_RETURN_IF_ERROR(store->Delete(platform::Nodes(), {"", name}, {}).status());
  }
  return absl::OkStatus();
}

// The port of the last run when it is free, so that kubeconfigs stay right.
StatusOr<std::unique_ptr<platform::ApiServer>> StartServer(platform::ApiServer::Options options,
                                                           int wanted, int last) {
  options.address.port = wanted != 0 ? wanted : last;
  StatusOr<std::unique_ptr<platform::ApiServer>> server = platform::ApiServer::Start(options);
  if (server.ok() || wanted != 0 || last == 0) return server;
  options.address.port = 0;
  return platform::ApiServer::Start(std::move(options));
}

void WaitForSignal(const sigset_t& signals, platform::EmbeddedStore* store) {
  const timespec period = {30, 0};
  while (::sigtimedwait(&signals, nullptr, &period) < 0) {
    store->SendBookmarks();
    const Status status = store->DropEvents(kEventsStay);
    if (!status.ok()) {
      WEFT_LOG_EVERY(WARNING, absl::Minutes(10)) << "Old events stay: " << status.message();
    }
  }
}

// Ends what the last run has left behind when it and its guard were killed, and says who we are for
// the next one. The folder is locked.
void EndLeftovers(const std::string& state, const std::string& mark) {
  RealFileSystem files;
  const std::string path = JoinPath(state, "guard");
  constexpr uint64_t kMostFileBytes = 4096;
  const std::string last = ReadFile(files, path, kMostFileBytes).value_or("");
  const int count = last.empty() ? 0 : KillMarked(last);
  if (count > 0) WEFT_LOG(WARNING) << "Ended " << count << " processes of pods of the last run";
  const Status status = WriteFile(files, path, mark);
  if (!status.ok()) WEFT_LOG(WARNING) << status.message();
}

platform::Controller::Options FrameOptions(platform::ObjectStore* store, const Clock* clock) {
  platform::Controller::Options options;
  options.store = store;
  options.clock = clock;
  return options;
}

platform::TfJobController::Options JobOptions(platform::ObjectStore* store, const Clock* clock,
                                              ThreadPool* calls) {
  platform::TfJobController::Options options;
  options.store = store;
  options.clock = clock;
  options.pool = calls;
  options.gather = kGather;
  // Each of a job's thousands of pods makes it look at all of them.
  options.packs_copies = false;
  return options;
}

StatusOr<std::unique_ptr<platform::PodScheduler>> MakeScheduler(
    const UpFlags& flags, platform::ObjectStore* store, const Clock* clock,
    platform::PodScheduler::Options options) {
  options.store = store;
  options.clock = clock;
  options.scheduler_names = {"default-scheduler", kSchedulerName};
  options.scheduler_names.insert(flags.scheduler_names.begin(), flags.scheduler_names.end());
  options.tells_foreign = true;
  return platform::PodScheduler::Create(std::move(options));
}

StatusOr<std::vector<Json>> ParseNodes(const std::vector<std::string>& words) {
  std::vector<Json> nodes;
  std::set<std::string> names;
  for (const std::string& word : words) {
    WEFT_ASSIGN_OR_RETURN(Json node, platform::ParseNodeWord(word));
    const std::string name = platform::NameOf(node);
    if (!names.insert(name).second)
      return InvalidArgument("--node names '", name, "' twice: each node has a name of its own");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// For machines that join: each as its node and no other. A word is NAME=FILE.
Status WriteNodeKubeconfigs(const std::vector<std::string>& words, int port,
                            const platform::ServerIdentity& identity) {
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> ends = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [node, path] = ends;
    if (node.empty() || path.empty())
      return InvalidArgument("--node_kubeconfig holds '", word, "', NAME=FILE is needed");
    WEFT_RETURN_IF_ERROR(platform::WriteKubeconfig(
        path, absl::StrCat("weft-", node), absl::StrCat("https://127.0.0.1:", port),
        identity.authority_pem, platform::NodeToken(node, identity.token)));
  }
  return absl::OkStatus();
}

// Kubeconfigs for people and for nodes, and a word how to begin.
Status TellTheWay(const UpFlags& flags, const std::string& state, int port,
                  const platform::ServerIdentity& identity) {
  const std::string kubeconfig =
      flags.kubeconfig.empty() ? JoinPath(state, "kubeconfig") : flags.kubeconfig;
  WEFT_RETURN_IF_ERROR(platform::WriteKubeconfig(kubeconfig, "weft",
                                                 absl::StrCat("https://127.0.0.1:", port),
                                                 identity.authority_pem, identity.token));
  WEFT_RETURN_IF_ERROR(WriteNodeKubeconfigs(flags.node_kubeconfigs, port, identity));
  std::printf("weft is up. Try:\n  export KUBECONFIG=%s\n  kubectl get tfjobs\n",
              kubeconfig.c_str());
  return absl::OkStatus();
}

// The page looks at the control plane as any other client does. Its key stays that of this state
// folder.
StatusOr<std::unique_ptr<platform::PageServer>> StartOwnPage(
    const UpFlags& flags, int port, const platform::ServerIdentity& identity, const Clock* clock) {
  platform::ClusterAccess access;
  access.server = absl::StrCat("https://127.0.0.1:", port);
  access.tls.authority_pem = identity.authority_pem;
  access.token = identity.token;
  platform::PageServer::Options options;
  options.address.port = flags.page_port;
  const std::string key = SealOf(identity.token, "page").substr(0, 32);
  WEFT_ASSIGN_OR_RETURN(auto page, StartPage(access, key, clock, std::move(options)));
  std::printf("The page is http://127.0.0.1:%d and asks for this key: %s\n", page->port(),
              key.c_str());
  return page;
}

// A file that may not grow is an error of the write, and what a client types may come to a program
// that reads no more: neither is our end.
void IgnoreBrokenWrites() {
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

// The output of trials' pods, from the folder of their logs.
platform::TrialOutputReader ReadsLogFolder(std::string folder) {
  return [folder = std::move(folder)](const platform::ObjectPtr& pod,
                                      const std::string& container) -> StatusOr<std::string> {
    WEFT_ASSIGN_OR_RETURN(const std::string path,
                          platform::PodExecutor::LogPath(folder, *pod, container, false));
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostOutputBytes));
    std::string lines;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      // Behind its time.
      line.remove_prefix(std::min(line.size(), line.find(' ') + 1));
      absl::StrAppend(&lines, line, "\n");
    }
    return lines;
  };
}

Status RunControlPlane(const UpFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Json> nodes, ParseNodes(flags.nodes));
  platform::PodScheduler::Options scheduling;
  WEFT_RETURN_IF_ERROR(ReadSchedulingFlags(flags.scheduling, &scheduling));
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  AdoptOrphans();
  const sigset_t signals = HoldBackSignals();
  RealClock clock;
  const std::string state = flags.state.empty() ? DefaultState() : flags.state;
  platform::EmbeddedStore::Options store_options;
  store_options.clock = &clock;
  WEFT_ASSIGN_OR_RETURN(store_options.journal, platform::SqliteJournal::Open(state));
  EndLeftovers(state, guard->mark());
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::EmbeddedStore::Open(std::move(store_options)));
  const std::string identity_folder = JoinPath(state, "server");
  WEFT_ASSIGN_OR_RETURN(const platform::ServerIdentity identity,
                        platform::LoadServerIdentity(identity_folder, clock.Now()));
  const std::string log_folder = JoinPath(state, "logs");
  platform::PodExecutor::Options pod_options =
      PodOptions(store.get(), &clock, guard.get(), log_folder, flags.pass_env);
  pod_options.volume_folder = VolumeFolder(state);
  pod_options.claim_folder = ClaimFolder(state);
  pod_options.nodes = std::move(nodes);
  if (pod_options.nodes.empty()) BeThisMachine(pod_options.node_name, &pod_options);
  WEFT_RETURN_IF_ERROR(RemoveOldNodes(pod_options.nodes, store.get()));
  auto executor = std::make_unique<platform::PodExecutor>(std::move(pod_options));
  platform::PodReach reach(executor.get(), &clock, guard.get());
  platform::ApiServer::Options server_options;
  server_options.store = store.get();
  server_options.clock = &clock;
  server_options.identity = identity.identity;
  server_options.token = identity.token;
  server_options.pods = &reach;
  server_options.log_path = [log_folder](const Json& pod, const std::string& container,
                                         bool is_previous) {
    return platform::PodExecutor::LogPath(log_folder, pod, container, is_previous);
  };
  WEFT_ASSIGN_OR_RETURN(auto server, StartServer(server_options, flags.port, identity.port));
  WEFT_RETURN_IF_ERROR(platform::SaveServerPort(identity_folder, server->port()));
  WEFT_RETURN_IF_ERROR(TellTheWay(flags, state, server->port(), identity));
  WEFT_ASSIGN_OR_RETURN(auto page, StartOwnPage(flags, server->port(), identity, &clock));
  std::fflush(stdout);
  {
    ThreadPool calls("calls", kParallelCalls);
    auto job_options = JobOptions(store.get(), &clock, &calls);
    platform::TfJobController jobs(job_options);
    job_options.type = &platform::Tensorflows();
    platform::TfJobController compact_jobs(job_options);
    WEFT_ASSIGN_OR_RETURN(const auto scheduler,
                          MakeScheduler(flags, store.get(), &clock, std::move(scheduling)));
    platform::WorkloadControllers workloads(FrameOptions(store.get(), &clock));
    WEFT_ASSIGN_OR_RETURN(const auto relay, platform::ServiceRelay::Create(store.get(), &clock));
    platform::Controller model_servers(
        FrameOptions(store.get(), &clock),
        std::make_unique<platform::ModelServerKind>(store.get(), platform::FetchServerPage));
    WEFT_ASSIGN_OR_RETURN(const auto services,
                          platform::SuggestionServices::Create(flags.suggestion_services));
    platform::TuningControllers tuning({FrameOptions(store.get(), &clock),
                                        ReadsLogFolder(log_folder), "127.0.0.1", services.get()});
    WEFT_ASSIGN_OR_RETURN(const auto katib,
                          platform::AnswerKatib(flags.katib_address, store.get()));
    executor->Start();
    scheduler->Start();
    workloads.Start(flags.threads);
    relay->Start();
    model_servers.Start(flags.threads);
    tuning.Start(flags.threads);
    jobs.Start(flags.threads);
    compact_jobs.Start(flags.threads);
    WaitForSignal(signals, store.get());
  }
  // Whoever reaches into pods goes before them, and what runs there before what it left behind.
  page.reset();
  server.reset();
  executor.reset();
  KillDescendants(guard->pid());
  return absl::OkStatus();
}

}  // namespace

void AddUp(CLI::App& app, Action* action) {
  CLI::App* up =
      app.add_subcommand("up", "Start a control plane on this machine, for kubectl and weft apply");
  const auto flags = std::make_shared<UpFlags>();
  up->add_option("--state", flags->state,
                 "Folder for objects and logs (default: ~/.local/state/weft)");
  up->add_option("--kubeconfig", flags->kubeconfig,
                 "Write the way to reach it here (default: in the state folder)");
  up->add_option("--port", flags->port,
                 "Port on 127.0.0.1 (default: that of the last time, or any)")
      ->check(CLI::Range(0, 65535));
  up->add_option("--page_port", flags->page_port,
                 "Port of the page on 127.0.0.1 (default: 8087, or any)")
      ->check(CLI::Range(0, 65535));
  up->add_option("--controller_threads", flags->threads, "Jobs that are looked at together")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  up->add_option("--node", flags->nodes,
                 "A node of this cluster, as NAME,cpu=8,memory=32Gi,gpu=4,label:KEY=VALUE,"
                 "taint:KEY=VALUE:NoSchedule; may be repeated. Its pods run on this machine "
                 "whatever it says (default: one node, 'local', with what this machine has)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  up->add_option("--node_kubeconfig", flags->node_kubeconfigs,
                 "NAME=FILE: write a way to reach it with the rights of that node alone, for "
                 "weft node and weft agent; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  up->add_option("--scheduler_name", flags->scheduler_names,
                 "Place pods with this schedulerName too; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddKatibFlags(up, &flags->katib_address, &flags->suggestion_services);
  AddPassEnvironmentFlag(up, &flags->pass_env);
  AddSchedulingFlags(up, &flags->scheduling);
  SetAction(up, action, [flags] {
    IgnoreBrokenWrites();
    return RunControlPlane(*flags);
  });
}

}  // namespace weft::apps
