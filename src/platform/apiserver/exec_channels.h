// SPDX-License-Identifier: Apache-2.0
// What a program that kubectl starts in a pod reads, prints and ends with, on its way over the
// wire.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/upgraded_connection.h"

namespace weft::platform {

enum ExecChannel : int { kExecInput, kExecOutput, kExecError, kExecStatus, kExecResize };

struct ExecInput {
  int channel = kExecInput;  // or kExecResize
  std::string bytes;
  bool is_last = false;
};

// Not thread-safe.
class ExecChannels {
 public:
  virtual ~ExecChannels() = default;
  // What has come. Any error ends the call.
  virtual Status Take(std::vector<ExecInput>* inputs) = 0;
  // All channels that were asked for are open.
  virtual bool IsReady() const = 0;
  virtual void Send(ExecChannel channel, absl::string_view bytes) = 0;
  // Nothing more will be sent.
  virtual void Finish() = 0;
  // The client has said that it goes.
  virtual bool has_ended() const = 0;
};

// "v4.channel.k8s.io" and "v5.channel.k8s.io": each message begins with its channel; in the second
// a client can end its input. Borrows the connection.
std::unique_ptr<ExecChannels> ExecOverWebSocket(UpgradedConnection* connection);
// Each channel is a stream. `channels` are those that the client will open.
std::unique_ptr<ExecChannels> ExecOverSpdy(UpgradedConnection* connection, std::set<int> channels);

}  // namespace weft::platform
