// SPDX-License-Identifier: Apache-2.0
// What the commands that run pods share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "platform/pods/pod_executor.h"

namespace weft::apps {

// Pods inherit what a program needs of our environment to run here (and `passed` of it, names that
// may end in '*'), with our programs first in PATH, and run in our working directory. Logs go below
// `log_folder`. All is borrowed.
platform::PodExecutor::Options PodOptions(platform::ObjectStore* store, const Clock* clock,
                                          ProcessGuard* guard, const std::string& log_folder,
                                          const std::vector<std::string>& passed);
// All of it but what belongs to another job or cluster.
std::vector<std::string> WholePodEnvironment();
// --pass_env of a command that runs pods.
void AddPassEnvironmentFlag(CLI::App* command, std::vector<std::string>* passed);

// This machine is the node of that name, with what it has now and later.
void BeThisMachine(const std::string& node, platform::PodExecutor::Options* options);

// Where `weft up` keeps what it knows, unless it is told.
std::string DefaultState();
// Below a state folder: the data of claims, and the volumes of pods that run.
std::string ClaimFolder(const std::string& state);
std::string VolumeFolder(const std::string& state);

}  // namespace weft::apps
