// SPDX-License-Identifier: Apache-2.0
// The controllers of jobs and of experiments on a real cluster, as `weft operator` runs them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "platform/jobs/webhook.h"
#include "platform/operator/operator_ports.h"
#include "platform/reconcile/leader_election.h"
#include "platform/store/kubernetes/kubeconfig.h"

namespace weft::platform {

struct OperatorOptions {
  ClusterAccess access;
  std::string namespace_name;  // empty: all
  std::string job_selector;    // of labels: "operator=weft,team!=vision"
  bool adopts_orphans = false;
  bool has_experiments = false;
  bool has_model_servers = false;
  int threads = 4;          // jobs that are looked at together
  int parallel_calls = 32;  // pods and services that are made together
  std::string gang_scheduler;
  std::string cluster_domain;
  absl::Duration log_period;             // zero: logs are not read for the progress of jobs
  std::map<std::string, double> prices;  // dollars an hour by kind of node
  PortOptions metrics;
  PortOptions health;
  WebhookOptions webhook;     // no port: jobs are not checked before they are kept
  std::string katib_address;  // where Katib's calls are answered; empty: nowhere
  std::vector<std::string> suggestion_services;  // whom experiments ask: "ALGORITHM=HOST:PORT"
  // Of several operators one acts. Its name, namespace and times are read, and checked, here.
  bool elects = false;
  LeaderElector::Options election;
};

// Returns when `wait` does. An error says what cannot begin: the cluster, a port, a certificate.
Status RunOperator(const OperatorOptions& options, const std::function<void()>& wait);

// Looks at all jobs once and tells what would change, in a line for each object; how many.
StatusOr<int> TellOperatorChanges(const OperatorOptions& options,
                                  const std::function<void(const std::string& line)>& tell);

}  // namespace weft::platform
