// SPDX-License-Identifier: Apache-2.0
#include "weft/client/session.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"

#include "weft/client/grpc_session.h"
#include "weft/client/local_session.h"
#include "weft/client/recorded_session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/inspect/cost_recorder.h"
#include "weft/master/local_masters.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::client {
namespace {

// Where `weft run --cost_file` and others want it; empty: nowhere.
std::string CostFile() {
  const char* const value = std::getenv("WEFT_COST_FILE");
  return value == nullptr ? "" : value;
}

// Where the sessions of a program that was written for this process alone are to run instead
// (`weft server -- PROGRAM`); empty: here. With devices or ops of its own it stays here.
std::string TargetFor(const SessionOptions& options) {
  const bool is_standard =
      (options.catalogue == nullptr || options.catalogue == &StandardCatalogue()) &&
      (options.devices == nullptr || options.devices == &StandardDevices());
  if (!options.target.empty() || !is_standard) return "";
  const char* const value = std::getenv("WEFT_SESSION_TARGET");
  return value == nullptr ? "" : value;
}

}  // namespace

StatusOr<std::unique_ptr<session::Session>> NewSession(const SessionOptions& options) {
  if (const std::string target = TargetFor(options); !target.empty()) {
    SessionOptions there = options;
    there.target = target;
    return NewSession(there);
  }
  if (options.target.empty() || options.target == "local") {
    StatusOr<std::unique_ptr<session::Session>> direct = session::NewDirectSession(
        {.catalogue = options.catalogue != nullptr ? options.catalogue : &StandardCatalogue(),
         .devices = options.devices != nullptr ? options.devices : &StandardDevices(),
         .soft_placement = options.soft_placement});
    const std::string cost_file = CostFile();
    if (!direct.ok() || (cost_file.empty() && !inspect::ShowsSteps())) return direct;
    return NewRecordedSession(*std::move(direct), cost_file);
  }
  if (!absl::StartsWith(options.target, "grpc://") || options.target.size() <= 7) {
    return InvalidArgument("Session target is '", options.target,
                           "', expected nothing (this process) or grpc://host:port");
  }
  std::shared_ptr<master::LocalMaster> here =
      options.always_dial ? nullptr : master::FindLocalMaster(options.target);
  if (here != nullptr) return NewLocalSession(std::move(here), options);
  return NewGrpcSession(options);
}

}  // namespace weft::client
