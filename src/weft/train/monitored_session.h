// SPDX-License-Identifier: Apache-2.0
// A session that starts, watches and restarts training.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/status.h"
#include "weft/session/session.h"
#include "weft/train/hooks.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"

namespace weft::train {

struct MonitoredOptions {
  // Makes an empty session; called again after a failure.
  std::function<StatusOr<std::unique_ptr<session::Session>>()> make_session;
  // The chief initializes or restores the variables; others wait until it has.
  bool is_chief = true;
  Saver* saver = nullptr;  // null: nothing is restored
  std::string checkpoint_folder;
  std::vector<Hook*> hooks;  // borrowed
  // The node that trains: the global step after it comes with the same step instead of another.
  Node* train = nullptr;
  std::vector<Node*> chief_init;             // run by the chief after the variables have values
  std::vector<Node*> chief_resume;           // and after that, if it found them with values
  absl::Duration max_wait = absl::Hours(2);  // for the chief, or for peers that are away
  absl::Duration poll = absl::Milliseconds(200);
};

// Runs steps; when a peer is lost (Aborted or Unavailable) it makes a new session, restores or
// waits as at the start, and goes on. Not thread-safe.
class MonitoredSession {
 public:
  // Finishes the graph (hooks may still add to it), makes the session and readies the variables.
  static StatusOr<std::unique_ptr<MonitoredSession>> Create(Program& program,
                                                            const MonitoredOptions& options);
  ~MonitoredSession();

  bool ShouldStop() const { return stop_; }
  // One step: `targets` (nodes) and `fetches`, with the hooks' fetches and the global step.
  Status Run(const std::vector<session::Feed>& feeds, const std::vector<Endpoint>& fetches,
             const std::vector<Node*>& targets, std::vector<Tensor>* results);
  // Runs without hooks.
  Status RunPlain(const std::vector<session::Feed>& feeds, const std::vector<Endpoint>& fetches,
                  const std::vector<Node*>& targets, std::vector<Tensor>* results);
  int64_t global_step() const { return global_step_; }
  session::Session& session() { return *session_; }
  // Tells the hooks that training is over. The destructor closes the session without them.
  Status End();

 private:
  MonitoredSession(const MonitoredOptions& options) : options_(options) {}
  Status Finalize(Program& program);
  // Makes and readies a session, again and again until it works or max_wait is over.
  Status Connect();
  Status TryConnect();
  void Disconnect();
  Status ReadyAsChief();
  Status WaitForChief();
  Status ReadGlobalStep();
  Status RunOnce(const std::vector<session::Feed>& feeds, const std::vector<Endpoint>& fetches,
                 const std::vector<Node*>& targets, std::vector<Tensor>* results);

  const MonitoredOptions options_;
  GraphDef graph_;
  std::string init_, local_init_, missing_, step_name_, train_, step_after_train_;
  std::vector<std::string> chief_init_, chief_resume_;
  std::unique_ptr<session::Session> session_;
  int64_t global_step_ = 0;
  bool stop_ = false;
};

// True for errors after which a new session may work.
bool IsLostPeer(const Status& status);

}  // namespace weft::train
