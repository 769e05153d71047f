// SPDX-License-Identifier: Apache-2.0
// Ports whose connections go on to other ports, in turn: one address for several servers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/posix_file.h"
#include "base/status.h"
#include "base/threads.h"
#include "net/socket_address.h"

namespace weft {

// Bytes pass as they are, both ways, until both sides have ended; a side that breaks breaks the
// other. Thread-safe; one thread of its own moves everything. Addresses are those of IPv4.
class TcpRelay {
 public:
  static StatusOr<std::unique_ptr<TcpRelay>> Start();
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  // Listens at `at` from now on. New connections go to one target after the other; one that refuses
  // is passed over, and without any the connection ends at once. Those that stand are let be.
  // AlreadyExists when the port is taken.
  Status Lead(const SocketAddress& at, std::vector<SocketAddress> targets);
  // Listens there no more; connections that stand are let be.
  void Drop(const SocketAddress& at);

 private:
  struct Entrance {
    OwnedFd listener;
    std::vector<SocketAddress> targets;
    size_t next = 0;
  };
  struct Side {
    OwnedFd fd;
    std::string waiting;  // to be written here
    bool has_ended = false;
    bool is_shut = false;
  };
  struct Pair {
    Side client, server;
  };

  TcpRelay() = default;
  void Run();
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();
  static OwnedFd Connect(Entrance* entrance);
  static bool Move(Side* from, Side* to);

  OwnedFd wake_read_, wake_write_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entrance> entrances_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Pair>> pairs_;  // of the thread
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft
