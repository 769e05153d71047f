// SPDX-License-Identifier: Apache-2.0
// `weft apply, get, describe, logs, wait, delete, scale, suspend, resume, top, trials`: kubectl's
// daily work, and what jobs need beside it, on any cluster or on `weft up`.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "apps/command.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "platform/console/commands.h"
#include "platform/console/job_commands.h"
#include "platform/console/node_table.h"
#include "platform/console/trial_list.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

constexpr int kMostCount = 1000000000;  // of what an API keeps in 32 bits

using platform::Console;
using platform::KubernetesStore;

struct ObjectFlags {
  ClusterFlags cluster;
  std::string namespace_name;
  platform::Selection selection;
  platform::GetOptions get;
  platform::LogOptions logs;
  platform::DeleteRequest deletion;
  std::string dry_run;
  std::string wait_for;
  std::string cascade = "background";
  int64_t replicas = 0;
  std::string replica_type;
  std::string timeout = "30s";
  int64_t grace_s = -1;
};

using Body = std::function<Status(const Console& console, KubernetesStore* server)>;

Status WithServer(const ObjectFlags& flags, const Body& body) {
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(platform::ClusterAccess access, FindCluster(flags.cluster));
  WEFT_ASSIGN_OR_RETURN(const auto server, KubernetesStore::Connect(access, &clock));
  Console console;
  console.store = server.get();
  console.clock = &clock;
  console.namespace_name =
      flags.namespace_name.empty() ? access.namespace_name : flags.namespace_name;
  console.print = [](absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  return body(console, server.get());
}

void SetConsoleAction(CLI::App* command, Action* action, const std::shared_ptr<ObjectFlags>& flags,
                      Body body) {
  SetAction(command, action, [flags, body = std::move(body)] { return WithServer(*flags, body); });
}

std::shared_ptr<ObjectFlags> AddObjectFlags(CLI::App* command) {
  const auto flags = std::make_shared<ObjectFlags>();
  AddClusterFlags(command, &flags->cluster);
  command->add_option("-n,--namespace", flags->namespace_name,
                      "Namespace (default: the context's)");
  return flags;
}

void AddSelection(CLI::App* command, const std::shared_ptr<ObjectFlags>& flags) {
  command->add_option("objects", flags->selection.words,
                      "A type and names (tfjob digits), or type/name ...");
  command->add_option("-l,--selector", flags->selection.label_selector, "Those with these labels");
}

StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if (!absl::ParseDuration(text, &timeout)) {
    return InvalidArgument("--timeout takes a duration such as 30s or 5m, not '", text, "'");
  }
  // As kubectl: none at all means once round, below zero for a week.
  if (timeout < absl::ZeroDuration()) return absl::Hours(24 * 7);
  return timeout;
}

void AddApply(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand("apply", "Make objects as files say");
  const auto flags = AddObjectFlags(command);
  command
      ->add_option("-f,--filename", flags->selection.files,
                   "Files in YAML or JSON or folders of them, - for stdin")
      ->required();
  command->add_option("--dry-run", flags->dry_run, "server: check, but keep nothing")
      ->check(CLI::IsMember({"none", "server"}));
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    return ApplyFiles(console, flags->selection.files, flags->dry_run == "server");
  });
}

void AddGet(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand("get", "List objects");
  const auto flags = AddObjectFlags(command);
  AddSelection(command, flags);
  command->add_option("-o,--output", flags->get.form, "wide, name, yaml or json");
  command->add_flag("-w,--watch", flags->get.watches, "Go on with what changes");
  command->add_flag("-A,--all-namespaces", flags->selection.all_namespaces, "In all namespaces");
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    Cancellation cancellation;
    platform::GetOptions options = flags->get;
    options.cancellation = &cancellation;
    return GetObjects(console, flags->selection, options);
  });
}

void AddDescribe(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand("describe", "Show objects with their events");
  const auto flags = AddObjectFlags(command);
  AddSelection(command, flags);
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    return DescribeObjects(console, flags->selection);
  });
}

void AddLogs(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("logs", "Show what a pod, or all pods of a job (tfjob/NAME), printed");
  const auto flags = AddObjectFlags(command);
  command->add_option("object", flags->selection.words, "POD, pod/POD or tfjob/JOB")
      ->required()
      ->expected(1);
  command->add_option("-c,--container", flags->logs.container,
                      "Container of the pod, when it has several");
  command->add_flag("-f,--follow", flags->logs.follows, "Go on until it ends");
  command->add_flag("-p,--previous", flags->logs.is_previous, "Of the run before the last restart");
  command->add_flag("--timestamps", flags->logs.with_times, "Each line with its time");
  command->add_option("--tail", flags->logs.tail_lines, "The last lines only");
  SetConsoleAction(
      command, action, flags, [flags](const Console& console, KubernetesStore* server) {
        Cancellation cancellation;
        return ShowLogs(console, server, flags->selection.words[0], flags->logs, &cancellation);
      });
}

void AddWait(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("wait", "Wait until objects are in a condition, or gone");
  const auto flags = AddObjectFlags(command);
  AddSelection(command, flags);
  command->add_option("-f,--filename", flags->selection.files, "Those of files or folders");
  command
      ->add_option("--for", flags->wait_for,
                   "condition=TYPE[=STATUS], jsonpath={.path}[=VALUE] or delete")
      ->required();
  command->add_flag("--all", flags->selection.is_all, "All of the type in the namespace");
  command->add_option("--timeout", flags->timeout, "How long at most: 30s, 5m; below 0: a week")
      ->capture_default_str();
  SetConsoleAction(
      command, action, flags, [flags](const Console& console, KubernetesStore*) -> Status {
        WEFT_ASSIGN_OR_RETURN(const absl::Duration timeout, ParseTimeout(flags->timeout));
        return WaitForObjects(console, flags->selection, flags->wait_for, timeout);
      });
}

void AddDelete(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand("delete", "Delete objects, with what they own");
  const auto flags = AddObjectFlags(command);
  AddSelection(command, flags);
  command->add_option("-f,--filename", flags->selection.files, "Those of files or folders");
  command->add_flag("--all", flags->selection.is_all, "All of the type in the namespace");
  command->add_flag("--wait,!--no-wait", flags->deletion.waits,
                    "Return when they have gone (the default)");
  command->add_flag("--ignore-not-found", flags->deletion.ignores_missing,
                    "What is not there is no error");
  command->add_option("--grace-period", flags->grace_s, "Seconds between SIGTERM and SIGKILL")
      ->check(CLI::Range(0, kMostCount));
  command->add_option("--cascade", flags->cascade, "What becomes of what they own")
      ->capture_default_str()
      ->check(CLI::IsMember({"background", "foreground", "orphan"}));
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    platform::DeleteRequest request = flags->deletion;
    if (flags->grace_s >= 0) request.grace_seconds = flags->grace_s;
    if (flags->cascade == "foreground") request.propagation = platform::Propagation::kForeground;
    if (flags->cascade == "orphan") request.propagation = platform::Propagation::kOrphan;
    return DeleteObjects(console, flags->selection, request);
  });
}

void AddScale(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("scale", "Say how many replicas a job, or a Deployment, shall have");
  const auto flags = AddObjectFlags(command);
  AddSelection(command, flags);
  command->add_flag("--all", flags->selection.is_all, "All of the type in the namespace");
  command->add_option("--replicas", flags->replicas, "How many")
      ->required()
      ->check(CLI::Range(0, kMostCount));
  command->add_option("--replica_type", flags->replica_type,
                      "Of a job: whose, such as PS or Evaluator (default: Worker)");
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    return ScaleObjects(console, flags->selection, flags->replicas, flags->replica_type);
  });
}

void AddSuspend(CLI::App& app, Action* action) {
  for (const bool is_suspended : {true, false}) {
    CLI::App* const command =
        app.add_subcommand(is_suspended ? "suspend" : "resume",
                           is_suspended ? "End the pods of jobs; the jobs stay, to be resumed"
                                        : "Let suspended jobs go on from what they have saved");
    const auto flags = AddObjectFlags(command);
    AddSelection(command, flags);
    command->add_flag("--all", flags->selection.is_all, "All of the type in the namespace");
    SetConsoleAction(command, action, flags,
                     [flags, is_suspended](const Console& console, KubernetesStore*) {
                       return SuspendJobs(console, flags->selection, is_suspended);
                     });
  }
}

void AddTop(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("top", "What pods, the pods of a job, or nodes use now");
  const auto flags = AddObjectFlags(command);
  command->add_option("objects", flags->selection.words,
                      "pods, pods NAME ..., tfjob/JOB or nodes (default: pods)");
  command->add_option("-l,--selector", flags->selection.label_selector, "Those with these labels");
  command->add_flag("-A,--all-namespaces", flags->selection.all_namespaces, "In all namespaces");
  SetConsoleAction(command, action, flags, [flags](const Console& console, KubernetesStore*) {
    return ShowTop(console, flags->selection);
  });
}

void AddTrials(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("trials", "What an experiment has tried and what came of it, best first");
  const auto flags = AddObjectFlags(command);
  const auto experiment = std::make_shared<std::string>();  // these are shared with the action
  const auto form = std::make_shared<std::string>("text");
  command->add_option("experiment", *experiment, "Its name")->required();
  command->add_option("-o,--output", *form, "text, csv or json")->capture_default_str();
  SetConsoleAction(command, action, flags,
                   [experiment, form](const Console& console, KubernetesStore*) -> Status {
                     WEFT_ASSIGN_OR_RETURN(const platform::TableForm table,
                                           platform::ParseTableForm(*form));
                     return ShowTrials(console, *experiment, table);
                   });
}

void AddNodes(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("nodes", "What the nodes of a cluster have, and what of it is taken");
  const auto flags = AddObjectFlags(command);
  const auto lists_gpus = std::make_shared<bool>(false);
  command->add_flag("--gpus", *lists_gpus, "Each GPU too, and which pods have it");
  SetConsoleAction(command, action, flags, [lists_gpus](const Console& console, KubernetesStore*) {
    return platform::ShowNodes(console, *lists_gpus);
  });
}

}  // namespace

void AddObjects(CLI::App& app, Action* action) {
  AddNodes(app, action);
  AddApply(app, action);
  AddGet(app, action);
  AddDescribe(app, action);
  AddLogs(app, action);
  AddWait(app, action);
  AddDelete(app, action);
  AddScale(app, action);
  AddSuspend(app, action);
  AddTop(app, action);
  AddTrials(app, action);
}

}  // namespace weft::apps
