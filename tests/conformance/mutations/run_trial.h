// SPDX-License-Identifier: Apache-2.0
// Runs trials in this process or at a server.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "absl/time/time.h"

#include "base/status.h"
#include "mutator.h"
#include "weft/session/session.h"

namespace weft::mutations {

// A step that takes longer, as one that waits for what nobody sends, is ended by its session.
constexpr absl::Duration kStepTime = absl::Milliseconds(100);

// A `weft server` of its own, in a folder of its own, with limited memory.
class OwnServer {
 public:
  static StatusOr<std::unique_ptr<OwnServer>> Start(const std::string& program, uint64_t memory);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const std::string& target() const { return target_; }
  // What ended it, with the end of its log; empty while it lives.
  std::string Death();

 private:
  OwnServer() = default;

  std::string folder_;
  std::string target_;
  pid_t pid_ = -1;
};

// Runs all steps, whatever they answer. An empty target means a session of this process. The status
// is the first error, which is what most trials come to.
Status RunTrial(const Trial& trial, const std::string& target);

}  // namespace weft::mutations
