// SPDX-License-Identifier: Apache-2.0
// Requests that leave HTTP to reach into a pod: exec, attach and port-forward.
#pragma once

#include <atomic>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/posix_file.h"
#include "base/threads.h"
#include "net/http_server.h"
#include "platform/apiserver/api_request.h"
#include "platform/apiserver/pod_access.h"

namespace weft::platform {

// Each such call has a thread until it ends. Thread-safe; borrows `pods`, null where nothing can be
// reached. The destructor ends the calls.
class RemoteCalls {
 public:
  RemoteCalls(PodLookup find_pod, PodAccess* pods);
  ~RemoteCalls();
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // "exec", "attach" and "portforward" of a pod. What is wrong with it is answered.
  void Answer(const ApiRequest& request, const std::shared_ptr<HttpReply>& reply);

 private:
  using Body = absl::AnyInvocable<void(UpgradedConnection* connection, int stop_fd)>;
  struct Call {
    std::atomic<bool> is_over{false};
    std::unique_ptr<Thread> thread;
  };
  // How the client wants to go on.
  struct Way;

  Status AnswerExec(const ApiRequest& request, const Way& way, HttpReply& reply);
  Status AnswerPortForward(const ApiRequest& request, const Way& way, HttpReply& reply);
  Status Begin(const Way& way, HttpReply& reply, Body body);
  void Run(std::unique_ptr<UpgradedConnection> connection, Body body);

  const PodLookup find_pod_;
  PodAccess* const pods_;
  const OwnedFd stop_;
  absl::Mutex mutex_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
