// SPDX-License-Identifier: Apache-2.0
// One port for two protocols: connections that begin with a TLS handshake, and plain ones.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/posix_file.h"
#include "base/status.h"
#include "base/threads.h"

namespace weft::wire {

// Accepts connections and tells them apart by the first byte that the client sends. One thread;
// who says nothing is dropped after a while, the oldest first where there are many of them.
class MixedListener {
 public:
  struct Options {
    absl::Duration first_byte_within = absl::Seconds(10);
    size_t most_silent = 256;
  };
  // Owns what it is given. Called on the listener's thread; must not block.
  using Handle = std::function<void(OwnedFd connection, bool is_tls)>;

  // "host:port", port 0 for any. Unavailable naming the address and the cause if it cannot listen.
  static StatusOr<std::unique_ptr<MixedListener>> Listen(const std::string& address,
                                                         const Options& options);
  ~MixedListener() { Stop(); }
  MixedListener(const MixedListener&) = delete;
  MixedListener& operator=(const MixedListener&) = delete;

  int port() const { return port_; }
  // Once. Connections wait in the system's queue until then.
  void Start(Handle handle);
  // Accepts no more and drops who has said nothing yet; no call of the handler comes after.
  void Stop();

 private:
  struct Silent {
    OwnedFd connection;
    absl::Time since;
  };
  MixedListener(OwnedFd listener, int port, Options options);
  void Run();
  void AcceptAll();
  // False while its first byte is not there.
  bool Sort(OwnedFd* connection);

  const Options options_;
  const int port_;
  OwnedFd listener_;
  OwnedFd stop_;  // readable: end
  Handle handle_;
  std::list<Silent> silent_;  // the thread's; the oldest first
  bool accepts_ = true;       // the thread's: false while the process has no descriptors left
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft::wire
