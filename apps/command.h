// SPDX-License-Identifier: Apache-2.0
// How a subcommand joins the program: each file of this folder adds one.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <signal.h>

#include "base/status.h"
#include "platform/store/kubernetes/kubeconfig.h"

namespace weft::apps {

// What the chosen subcommand does; the exit code.
using Action = std::function<int()>;

// As typed: `program` is what stands after the first "--", which the flags never see.
struct CommandLine {
  std::vector<std::string> words;
  std::vector<std::string> program;
};

// The action of a command that does or says all by itself, or fails with a word why and exit
// code 1.
void SetAction(CLI::App* command, Action* action, std::function<Status()> body);

// What ends a command that runs on: for sigwait. Before any thread is made, so that all of them
// leave the signals to that.
sigset_t HoldBackSignals(std::initializer_list<int> which = {SIGINT, SIGTERM, SIGHUP});
// The same for a server, to which a connection that broke is an error of the write.
sigset_t HoldBackServerSignals();
// Until one of them comes, and says so. A second one ends the process at once.
void WaitForServerEnd(const sigset_t& signals, const std::function<void()>& before_end = nullptr);

// Of the commands that work on a cluster: which one.
struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
};
// `flags` outlives the parsing.
void AddClusterFlags(CLI::App* command, ClusterFlags* flags);
StatusOr<platform::ClusterAccess> FindCluster(const ClusterFlags& flags);

void AddAgent(CLI::App& app, Action* action);
void AddBench(CLI::App& app, Action* action);
void AddCheck(CLI::App& app, Action* action);
void AddCrd(CLI::App& app, Action* action);
void AddDoctor(CLI::App& app, Action* action);
void AddExec(CLI::App& app, const CommandLine& line, Action* action);
void AddInspect(CLI::App& app, Action* action);
void AddNode(CLI::App& app, Action* action);
void AddObjects(CLI::App& app, Action* action);
void AddOpLibrary(CLI::App& app, Action* action);
void AddOperator(CLI::App& app, Action* action);
void AddPlan(CLI::App& app, Action* action);
void AddPredict(CLI::App& app, Action* action);
void AddPlan(CLI::App& app, const CommandLine& line, Action* action);
void AddRender(CLI::App& app, Action* action);
void AddRun(CLI::App& app, const CommandLine& line, Action* action);
void AddScheduler(CLI::App& app, Action* action);
void AddSecret(CLI::App& app, Action* action);
void AddServe(CLI::App& app, Action* action);
void AddServer(CLI::App& app, const CommandLine& line, Action* action);
void AddSimulate(CLI::App& app, Action* action);
void AddTune(CLI::App& app, const CommandLine& line, Action* action);
void AddUi(CLI::App& app, Action* action);
void AddUp(CLI::App& app, Action* action);

}  // namespace weft::apps
