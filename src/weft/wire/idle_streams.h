// SPDX-License-Identifier: Apache-2.0
// Streams of a server that wait for their clients' next message, for as long as these like.
#pragma once

#include <utility>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace weft::wire {

// Thread-safe.
class IdleStreams {
 public:
  using Stream = grpc::ServerGenericBidiReactor;

  // `read` starts to wait for the message. Where the server ends, the stream is finished instead.
  void Await(Stream* stream, absl::FunctionRef<void()> read) {
    {
      absl::MutexLock lock(&mutex_);
      if (!ending_) {
        // Under the lock, as nothing may be started once a stream is finished; gRPC tells of what
        // came on threads of its own.
        read();
        waiting_.insert(stream);
        return;
      }
    }
    Finish(stream);
  }
  // A message came, or the client's end. False if the stream was finished meanwhile.
  bool Came(Stream* stream) {
    absl::MutexLock lock(&mutex_);
    return waiting_.erase(stream) > 0;
  }
  // Finishes all, and those that come to wait from now on.
  void End() {
    absl::flat_hash_set<Stream*> all;
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
      all.swap(waiting_);
    }
    for (Stream* stream : all) Finish(stream);
  }

 private:
  static void Finish(Stream* stream) {
    stream->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "The server is shutting down"));
  }

  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Stream*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::wire
