// SPDX-License-Identifier: Apache-2.0
// Katib's calls on a port, over gRPC.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "platform/tuning/katib_calls.h"

namespace weft::platform {

// Thread-safe. Calls that run end before it does.
class KatibServer {
 public:
  // `address` is "127.0.0.1:6789"; port 0 is any free one. Unavailable when it is taken. Katib's
  // interfaces know no credentials: an address that others reach is for a network that keeps
  // strangers out.
  static StatusOr<std::unique_ptr<KatibServer>> Start(const std::string& address,
                                                      std::map<std::string, KatibCall> calls);
  ~KatibServer();
  KatibServer(const KatibServer&) = delete;
  KatibServer& operator=(const KatibServer&) = delete;

  int port() const;

 private:
  class Impl;
  explicit KatibServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;  // keeps gRPC's headers in the .cc
};

// Suggestions and the database of trials' metrics, told to the log; null for an empty address. The
// store is borrowed.
StatusOr<std::unique_ptr<KatibServer>> AnswerKatib(const std::string& address, ObjectStore* store);

}  // namespace weft::platform
