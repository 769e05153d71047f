// SPDX-License-Identifier: Apache-2.0
// What plans are made from, read from the files that users have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/command.h"
#include "base/status.h"
#include "platform/placement/cluster.h"
#include "platform/placement/cost_model.h"
#include "platform/placement/step_graph.h"

namespace weft::apps {

// Dollars an hour by kind of node (ParsePrices).
StatusOr<std::map<std::string, double>> ReadPriceFile(const std::string& path);

// Nodes of a file as `weft simulate` reads it (Node objects, or a table), or of shapes
// ("p3.8xlarge*4"). Both empty: this machine. Nodes whose label node.kubernetes.io/instance-type is
// a known shape have its network and price; `prices`, a JSON object of dollars an hour by shape,
// goes before.
StatusOr<platform::Cluster> ReadCluster(const std::string& nodes, const std::string& shapes,
                                        const std::string& prices);
// The same of the nodes that a cluster has now and lets pods onto.
StatusOr<platform::Cluster> ReadLiveCluster(const ClusterFlags& flags, const std::string& prices);

// This machine's processors: what cost files were measured on, as long as nobody says otherwise.
platform::DeviceProfile ThisMachine();

struct StepSource {
  std::string path;  // a cost file, or a graph in whatever form TensorFlow writes
  std::vector<std::string> targets;
  int64_t batch = 0;
  bool least = false;  // OpTime::kLeast
};
StatusOr<platform::StepGraph> ReadStep(const StepSource& source);

}  // namespace weft::apps
