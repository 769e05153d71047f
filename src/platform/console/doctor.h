// SPDX-License-Identifier: Apache-2.0
// What a machine or a cluster lacks for weft, and what to type next.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

enum class Verdict {
  kGood,
  kWorse,  // it works, but slower or with less
  kBad,    // it does not work
};

struct Finding {
  std::string about;  // "kernel"
  Verdict verdict = Verdict::kGood;
  std::string found;  // what there is, and what was expected
  std::string next;   // the command to type; empty when it is good
};

// What this process sees of its machine. `root` is put before /proc, /sys and /dev.
std::vector<Finding> CheckMachine(const std::string& root = "");

struct ClusterView {
  std::string server;
  std::string namespace_name;  // of the operator's work; empty: all
  // Where the operator's Lease lies, and whether it asks for one, as it does inside a cluster.
  std::string lease_namespace;
  bool elects = false;
  // A page of the API server: "/version".
  std::function<StatusOr<Json>(const std::string& path)> get;
  // What the server says to a SelfSubjectAccessReview of these resourceAttributes. NotFound: it has
  // no authorization.
  std::function<StatusOr<bool>(const Json& attributes)> may;
};
// With `as_operator` what the operator's account must be allowed, else what somebody who runs jobs
// must be.
std::vector<Finding> CheckCluster(const ClusterView& cluster, bool as_operator);

// Lines for people, the bad ones last; with `is_quiet` those that are good are left out.
std::string DescribeFindings(const std::vector<Finding>& findings, bool is_quiet);
// [{"check": ..., "verdict": "good" | "worse" | "bad", "found": ..., "next": ...}]
Json FindingsAsJson(const std::vector<Finding>& findings);
bool IsAnyBad(const std::vector<Finding>& findings);

}  // namespace weft::platform
