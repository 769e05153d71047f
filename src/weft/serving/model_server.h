// SPDX-License-Identifier: Apache-2.0
// A process that answers with models: its ports and all behind them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "proto/serving/config.pb.h"
#include "weft/serving/model_set.h"
#include "weft/serving/rest_api.h"
#include "weft/wire/grpc_service.h"

namespace weft::serving {

struct ModelServerOptions {
  // Its files, metrics, pool and timers are the server's own.
  ModelSetOptions models;
  // Weights stay in their files, mapped, instead of being read.
  bool maps_weights = false;
  bool batches = false;
  tensorflow::serving::ModelServerConfig config;
  // Read again every `config_poll` and followed, where both are set.
  std::string config_file;
  absl::Duration config_poll;

  std::string bind = "127.0.0.1";
  int port = 8500;          // of gRPC; 0: any, -1: none
  std::string socket_path;  // of gRPC as well; empty: none
  int rest_port = -1;       // 0: any, -1: none
  // In the clear and without a secret, for who looks after servers: /healthz, /livez and the
  // metrics.
  int metrics_port = -1;  // 0: any, -1: none
  int grpc_threads = 0;   // 0: four times the cores; the same of REST
  int rest_threads = 0;
  size_t max_rest_body = size_t{64} << 20;
  bool with_health = false;
  // Needed where the ports are not on loopback, with tokens or clients' certificates, unless
  // `insecure`.
  wire::PortSecurity security;
  bool insecure = false;
  RestOptions rest;  // but for the tokens, which `security` has
};

// Thread-safe. The destructor shuts it down.
class ModelServer {
 public:
  // Listens when it returns: the models that there are have been loaded, or failed, which the log
  // tells. FailedPrecondition for a port that others reach without a secret; InvalidArgument as
  // ModelSet::Configure gives; Unavailable for a port that cannot be had.
  static StatusOr<std::unique_ptr<ModelServer>> Start(ModelServerOptions options);
  virtual ~ModelServer() = default;
  virtual int port() const = 0;       // -1: none
  virtual int rest_port() const = 0;  // the same
  virtual int metrics_port() const = 0;
  // Says that it is not ready, and answers on: for those who send requests to find another.
  virtual void Drain() = 0;
  // Refuses new calls and waits at most `grace` for running ones. Once; blocks.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace weft::serving
