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

// What happens before the first step besides what the program itself says. All parts are optional.
struct Scaffold {
  // Run with `init_feeds` where nothing was restored, in place of the variables' own initial
  // values.
  Node* init = nullptr;
  std::vector<session::Feed> init_feeds = {};
  // Called after that: what gives variables the values of another model (LoadedModel::Restore).
  std::function<Status(session::Session&)> init_function = nullptr;
  // A string vector: the names of what is not ready for training; in place of all variables that
  // have no value. Everybody waits until it is empty.
  Endpoint not_ready = {};
  std::vector<Node*> local_init = {};  // run by each task with the local variables' initial values
};

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
  Scaffold scaffold = {};
  // Whether the chief answers (Task::CheckChief), asked every ten seconds while others wait for it:
  // after `chief_grace` of silence they give up, and say so.
  std::function<Status()> check_chief = nullptr;
  absl::Duration chief_grace = absl::Minutes(10);
  // What hooks still do at the end, such as the last checkpoint, may take so long.
  absl::Duration stop_grace = absl::InfiniteDuration();
};

// The parameters of TensorFlow's MonitoredTrainingSession, with its defaults.
struct TrainingOptions {
  // Makes an empty session; called again after a failure.
  std::function<StatusOr<std::unique_ptr<session::Session>>()> make_session;
  bool is_chief = true;
  std::string checkpoint_folder;  // empty: nothing is saved or restored
  Scaffold scaffold = {};
  std::vector<Hook*> hooks = {};             // borrowed
  std::vector<Hook*> chief_only_hooks = {};  // borrowed
  Every save_checkpoint = {.time = absl::Minutes(10)};
  bool save_in_background = false;  // all but the last checkpoint, while steps go on
  Every save_summaries = Every::Steps(100);
  int64_t log_step_count_steps = 100;  // 0: the speed is not told
  absl::Duration stop_grace = absl::Seconds(120);
  absl::Duration max_wait = absl::Hours(2);
  std::string summary_folder = {};  // empty: the folder of the checkpoints
  Node* train = nullptr;            // as in MonitoredOptions
  std::function<Status()> check_chief = nullptr;
  absl::Duration chief_grace = absl::Minutes(10);
  const Clock* clock = nullptr;  // null: the system's
};

// Runs steps; when a peer is lost (Aborted or Unavailable) it makes a new session, restores or
// waits as at the start, and goes on. Not thread-safe.
class MonitoredSession {
 public:
  // Finishes the graph (hooks may still add to it), makes the session and readies the variables.
  static StatusOr<std::unique_ptr<MonitoredSession>> Create(Program& program,
                                                            const MonitoredOptions& options);
  // The same with a Saver and the hooks that the options tell of: the chief saves checkpoints and
  // summaries and counts steps. Call it after the last variable, the optimizer's too.
  static StatusOr<std::unique_ptr<MonitoredSession>> CreateTraining(Program& program,
                                                                    const TrainingOptions& options);
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
  // Called when the variables have their values, or `step` began without some.
  Status InitializeAsChief();
  // Waits until nothing is missing; whose word for it is `who`.
  Status WaitUntilReady(const std::string& who);
  Status ReadGlobalStep();
  Status RunOnce(const std::vector<session::Feed>& feeds, const std::vector<Endpoint>& fetches,
                 const std::vector<Node*>& targets, std::vector<Tensor>* results);

  const MonitoredOptions options_;
  GraphDef graph_;
  std::string init_, local_init_, init_states_, missing_, not_ready_;
  std::string step_name_, train_, step_after_train_;
  std::vector<std::string> chief_init_, chief_resume_;
  // What CreateTraining made, which the options borrow.
  std::unique_ptr<Saver> own_saver_;
  std::vector<std::unique_ptr<Hook>> own_hooks_;
  std::unique_ptr<session::Session> session_;
  int64_t global_step_ = 0;
  bool stop_ = false;
};

// True for errors after which a new session may work.
bool IsLostPeer(const Status& status);

}  // namespace weft::train
