// SPDX-License-Identifier: Apache-2.0
// One container of a pod, as a process that may be started again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/files.h"
#include "base/posix_file.h"
#include "base/subprocess.h"
#include "net/json.h"
#include "platform/object/pod_view.h"
#include "platform/pods/confinement.h"
#include "platform/pods/container_environment.h"
#include "platform/pods/container_output.h"
#include "platform/pods/container_standing.h"
#include "platform/pods/restart_row.h"

namespace weft::platform {

// What somebody who comes later reads and writes; closed where there is nothing.
struct ContainerStreams {
  OwnedFd in;
  OwnedFd out;
  OwnedFd err;
  OwnedFd terminal;  // whose size may be set
};

// Not thread-safe. Its destructor kills what runs.
class ContainerRun {
 public:
  using State = ContainerState;
  using Kind = ContainerKind;

  ContainerRun(std::string name, Kind kind, ContainerOutput output, const RestartPacing& pacing)
      : name_(std::move(name)), kind_(kind), output_(name_, std::move(output)), row_(pacing) {}
  ~ContainerRun() { EndProcesses(); }

  // Of one that began before we did, by its status: what had ended stays so; what ran was lost. Its
  // restarts go on from there.
  void Recover(const ContainerStatusView& status, absl::Time now);
  // Spawns; what cannot be spawned has ended with 127. Times are of the wall clock. `confinement`
  // may be null.
  void Start(const ContainerCommand& command, ProcessGuard* guard, absl::Time now,
             std::unique_ptr<Confinement> confinement = nullptr);
  // Ended without having begun.
  void FailToStart(const std::string& reason, const std::string& message, absl::Time now);
  void SetWaiting(const std::string& reason, const std::string& message);
  void Signal(int signal);
  // What its probes say; a run without any has started and is ready.
  void SetHealth(bool has_started, bool is_ready);
  bool is_ready() const { return state_ == State::kRunning && is_ready_; }

  // What it runs, and how it is held to its resources (null: not), for programs that run beside it;
  // only while it runs.
  const ContainerCommand& command() const { return command_; }
  const Confinement* confinement() const { return confinement_.get(); }

  // The ends of pipes, or of its terminal, that reach what runs. `takes_input`: whoever writes to
  // `in` is heard; FailedPrecondition when the container hears nobody, or not any more.
  StatusOr<ContainerStreams> Attach(bool takes_input);

  // Reads what it printed; notices its end, true when it just came.
  bool Advance(absl::Duration monotonic_now, absl::Time now);
  pid_t pid() const { return process_ == nullptr ? 0 : process_->pid(); }
  int pidfd() const { return process_ == nullptr ? -1 : process_->pidfd(); }
  int stdout_fd() const { return output_.stdout_fd(); }
  int stderr_fd() const { return output_.stderr_fd(); }
  absl::Duration output_due() const { return output_.due(); }

  State state() const { return state_; }
  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  bool is_init() const { return kind_ != Kind::kMain; }  // or a sidecar
  bool is_sidecar() const { return kind_ == Kind::kSidecar; }
  // What comes after it may begin: an init container is done, a sidecar has once been up.
  bool is_past() const { return is_sidecar() ? has_been_up_ : has_succeeded(); }
  bool has_succeeded() const { return state_ == State::kTerminated && exit_code_ == 0; }
  int64_t restart_count() const { return restart_count_; }
  int exit_code() const { return exit_code_; }  // of the last end: a shell's code
  // There is no such program, or it may not be started; message() says why.
  bool is_unable_to_run() const { return state_ == State::kTerminated && reason_ == kUnableToRun; }
  const std::string& message() const { return message_; }
  // When what has ended may be started again; InfiniteFuture: its row is as long as it may be.
  absl::Time restart_time() const { return row_.restart_time(); }
  absl::Time finished() const { return finished_; }
  absl::Time started() const { return started_; }
  // As in status.containerStatuses.
  Json Describe(const std::string& image) const;

 private:
  // What it left to say why it ended; empty: nothing.
  std::string TakeMessage(bool has_failed);
  void CountStart();
  // Kills what is left of this run, also what has left its group.
  void EndProcesses();
  void Terminate(int exit_code, int signal, const std::string& reason, const std::string& message,
                 absl::Time now);
  Json DescribeTermination() const;

  static constexpr char kUnableToRun[] = "ContainerCannotRun";  // as a reason

  const std::string name_;
  const Kind kind_;
  OutputReader output_;
  RestartRow row_;
  RealFileSystem files_;
  State state_ = State::kWaiting;
  std::string reason_ = "ContainerCreating";
  std::string message_;
  int exit_code_ = 0;
  int signal_ = 0;
  bool has_run_ = false;
  bool has_been_up_ = false;
  bool has_started_ = true;
  bool is_ready_ = true;
  int64_t restart_count_ = 0;
  absl::Time started_;
  absl::Time finished_;
  Json last_;                                 // how the run before ended
  std::unique_ptr<Confinement> confinement_;  // before the process: that ends first
  ContainerCommand command_;                  // with the mark of what it runs
  std::string mark_;
  std::unique_ptr<Subprocess> process_;
  std::string message_file_;  // of the run, as in ContainerCommand
  bool has_message_in_log_ = false;
};

}  // namespace weft::platform
