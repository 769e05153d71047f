// SPDX-License-Identifier: Apache-2.0
// A ModelServer: which models are answered with, by how many servers, and how a change comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct ServedModel {
  std::string name;
  std::string base_path;
  bool has_all_versions = false;
  std::vector<int64_t> versions;  // these alone; empty: the latest ones
  int64_t latest = 1;             // so many of them
  std::vector<std::pair<std::string, int64_t>> labels;
};

struct ServerBatching {
  int64_t max_batch_size = 0;  // of each, 0: as the server has it
  int64_t timeout_micros = 0;
  int64_t max_enqueued = 0;
  int64_t threads = 0;
  std::vector<int64_t> allowed_sizes;
};

struct ServerScaling {
  int64_t least = 1;
  int64_t most = 1;
  double target = 0;  // requests that wait or run at a server, on average
  absl::Duration period = absl::Seconds(15);
  absl::Duration settle_up;                         // how long more must be wanted
  absl::Duration settle_down = absl::Seconds(300);  // how long fewer must be enough
};

struct ServerRollout {
  std::vector<int64_t> steps = {100};            // percent of the servers, ascending, 100 last
  absl::Duration step;                           // how long each is watched
  absl::Duration deadline = absl::Seconds(600);  // until the servers of a step are ready
  double most_errors = 100;                      // percent more of the requests than before
  absl::Duration most_latency = absl::InfiniteDuration();  // of 99 in 100 requests
  int64_t least_requests = 0;  // that the new servers must have answered before a step is over
};

struct ModelServerSpec {
  std::string name;
  std::vector<ServedModel> models;
  std::optional<ServerBatching> batching;
  int64_t threads = 0;
  std::string memory_limit;
  std::vector<std::string> flags;
  int64_t replicas = 1;
  std::optional<ServerScaling> scaling;
  ServerRollout rollout;
  int64_t drain_seconds = 5;
  std::string tls_secret;
  std::string token_secret;
  Json container;  // image, command, env, resources, volumeMounts; as a pod holds them
  Json pod;        // volumes, nodeSelector and their kin
};

// Everything that is wrong goes into `problems`; what is returned then makes no sense.
ModelServerSpec ParseModelServer(const Json& object, Problems* problems);

}  // namespace weft::platform
