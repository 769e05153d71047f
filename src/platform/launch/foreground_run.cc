// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/foreground_run.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

#include "base/poll_timeout.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

// Between the threads that write to the store and the one that looks on.
class News {
 public:
  News() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Add(const WatchEvent& event) {
    if (event.object == nullptr || event.kind == WatchEvent::Kind::kBookmark) return;
    {
      absl::MutexLock lock(&mutex_);
      events_.push_back(event);
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  }
  std::vector<WatchEvent> Take() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof(count));
    absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }
  int fd() const { return wake_.get(); }

 private:
  const OwnedFd wake_;
  absl::Mutex mutex_;
  std::vector<WatchEvent> events_ ABSL_GUARDED_BY(mutex_);
};

class Foreground {
 public:
  Foreground(const LocalJob& job, const ForegroundOptions& options)
      : job_(job), options_(options), watch_(job, options.watch, options.clock, MakeActions()) {}

  StatusOr<JobOutcome> Run() {
    WatchOptions watch;
    watch.namespace_name = NamespaceOf(job_.object);
    const WatchSink sink = [this](const WatchEvent& event) { news_.Add(event); };
    WEFT_ASSIGN_OR_RETURN(const auto pods, options_.store->StartWatch(Pods(), watch, sink));
    WEFT_ASSIGN_OR_RETURN(const auto jobs, options_.store->StartWatch(TfJobs(), watch, sink));
    WEFT_RETURN_IF_ERROR(
        options_.store->Create(TfJobs(), NamespaceOf(job_.object), job_.object, WriteOptions())
            .status());
    while (true) {
      Look();
      // What was written while it looked may be a pod that it has to wait for.
      if (watch_.IsOver()) Look();
      if (watch_.IsOver()) return watch_.TakeOutcome();
      Wait();
    }
  }

 private:
  JobActions MakeActions() {
    JobActions actions;
    actions.end_job = [this] { Note(EndJob()); };
    actions.kill_rest = [this] { KillRest(); };
    actions.last_lines = [this](const std::string& task) {
      return options_.output->LastLines(task);
    };
    actions.say = [this](const std::string& line) { options_.output->Say(line); };
    return actions;
  }

  // What it owned goes with it: pods are asked to end.
  Status EndJob() {
    const Status status =
        options_.store->Delete(TfJobs(), {NamespaceOf(job_.object), job_.name}, DeleteOptions())
            .status();
    return IsObjectNotFound(status) ? absl::OkStatus() : status;
  }

  void KillRest() {
    ListOptions list;
    list.namespace_name = NamespaceOf(job_.object);
    const StatusOr<ObjectList> pods = options_.store->List(Pods(), list);
    if (!pods.ok()) return Note(pods.status());
    for (const ObjectPtr& pod : pods->items) {
      DeleteOptions now;
      now.grace_seconds = 0;
      const Status status =
          options_.store->Delete(Pods(), {NamespaceOf(*pod), NameOf(*pod)}, now).status();
      if (!IsObjectNotFound(status)) Note(status);
    }
  }

  void Note(const Status& status) {
    if (!status.ok()) options_.output->Say(std::string(status.message()));
  }

  void Look() {
    for (const WatchEvent& event : news_.Take()) {
      const Json& object = *event.object;
      const bool is_gone = event.kind == WatchEvent::Kind::kDeleted;
      if (StringField(object, {"kind"}) == "Pod") {
        watch_.OnPod(TaskOfPod(job_, object), object, is_gone);
      } else if (!is_gone && NameOf(object) == job_.name) {
        watch_.OnJob(object);
      }
    }
    signalfd_siginfo info;
    while (::read(options_.interrupts, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      watch_.OnInterrupt(static_cast<int>(info.ssi_signo));
    }
    watch_.FireTimers();
  }

  void Wait() const {
    pollfd poll_fds[] = {{news_.fd(), POLLIN, 0}, {options_.interrupts, POLLIN, 0}};
    ::poll(poll_fds, 2, PollTimeoutMs(watch_.UntilNextTimer()));
  }

  const LocalJob& job_;
  const ForegroundOptions& options_;
  News news_;
  JobWatch watch_;
};

}  // namespace

StatusOr<OwnedFd> BlockInterrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  OwnedFd descriptor(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor.is_open()) return ErrnoStatus(errno, "make", "a signal descriptor");
  return descriptor;
}

std::string TaskOfPod(const LocalJob& job, const Json& pod) {
  return std::string(absl::StripPrefix(NameOf(pod), job.name + "-"));
}

StatusOr<int> RunInForeground(const LocalJob& job, const ForegroundOptions& options) {
  TaskOutput& output = *options.output;
  for (const std::string& note : job.notes) output.Say(note);
  output.Say(absl::StrCat("job '", job.name, "': starting ", job.tasks.size(),
                          job.tasks.size() == 1 ? " task" : " tasks"));
  WEFT_ASSIGN_OR_RETURN(const JobOutcome outcome, Foreground(job, options).Run());
  const double seconds = absl::ToDoubleSeconds(outcome.elapsed);
  switch (outcome.kind) {
    case JobOutcome::Kind::kSucceeded:
      output.Say(absl::StrFormat("job '%s' succeeded after %.1f s", job.name, seconds));
      break;
    case JobOutcome::Kind::kInterrupted:
      output.Say(absl::StrFormat("job '%s' %s after %.1f s; nothing of it is left running",
                                 job.name, outcome.reason, seconds));
      break;
    case JobOutcome::Kind::kFailed:
      std::fputs(FailureScreen(job, outcome, options.screen).c_str(), stderr);
      break;
  }
  return outcome.exit_code;
}

}  // namespace weft::platform
