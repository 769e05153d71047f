// SPDX-License-Identifier: Apache-2.0
// What happens around the steps of a monitored session.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "weft/session/session.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"

namespace weft::train {

// One finished step.
struct StepContext {
  session::Session* session = nullptr;
  int64_t global_step = 0;
  const std::vector<Tensor>* values = nullptr;     // of this hook's Fetches()
  const session::RunMetadata* metadata = nullptr;  // of a traced step
  bool* stop = nullptr;                            // set to end training
};

// How often a hook acts: after so many steps or after so much time, whichever is first.
struct Every {
  static Every Steps(int64_t count) { return {.steps = count}; }

  int64_t steps = 0;  // 0: not by steps
  absl::Duration time = absl::InfiniteDuration();
};

// Called in order by MonitoredSession, on its thread. All parts are optional.
class Hook {
 public:
  virtual ~Hook() = default;
  // While the graph may still grow.
  virtual Status Begin(Program&) { return absl::OkStatus(); }
  // A session is ready: the first, or another after a failure.
  virtual Status AfterCreate(session::Session&, int64_t /*global_step*/) {
    return absl::OkStatus();
  }
  // Asked once AfterCreate was called: whether nothing is left to train. Who joins a training that
  // has ended must not start a step, for nobody would answer it.
  virtual bool Done(int64_t /*global_step*/) { return false; }
  // Tensors to fetch with the next step.
  virtual std::vector<std::string> Fetches() { return {}; }
  // Whether the next step shall be traced.
  virtual bool WantsTrace() { return false; }
  virtual Status AfterRun(const StepContext&) { return absl::OkStatus(); }
  // The session has been closed, for whatever reason, and goes away: let go of it.
  virtual void AfterClose() {}
  // Training is over and the session still works.
  virtual Status End(session::Session&, int64_t /*global_step*/) { return absl::OkStatus(); }
};

// Ends training when the global step reaches `last_step`.
std::unique_ptr<Hook> StopAtStep(int64_t last_step);
// Saves as often as `every` says, at the start, and at the end. Borrows the saver and the clock;
// without a clock time is the system's.
std::unique_ptr<Hook> SaveCheckpoints(Saver* saver, std::string folder, Every every,
                                      const Clock* clock = nullptr);
// The same, written while training goes on: a step waits only until the values are taken. The
// saver must be made with can_take. What a write says is told by the hook's next turn.
std::unique_ptr<Hook> SaveCheckpointsInBackground(Saver* saver, std::string folder, Every every,
                                                  const Clock* clock = nullptr);
// Writes merged summaries (and the graph) as often as `every` says as an event file in `folder`.
std::unique_ptr<Hook> WriteSummaries(std::string folder, Every every, const Clock* clock = nullptr);
// Logs global steps a second as often as `every` says and, where there is a folder, writes them to
// an event file there as TensorFlow does: "global_step/sec".
std::unique_ptr<Hook> CountSteps(std::string folder, Every every, const Clock* clock = nullptr);
// Traces the first step and every `steps`-th after it: `folder`/trace-<global step>.json, for
// ui.perfetto.dev.
std::unique_ptr<Hook> WriteTraces(std::string folder, int64_t steps);

// What a progress line says.
struct Progress {
  int64_t step = 0;
  int64_t last_step = 0;
  float loss = 0;
  double examples_per_second = 0;
  absl::Duration left = absl::InfiniteDuration();
  bool is_last = false;
};
// Fetches `loss` each step and tells `show` at most every `every`; examples/s from `batch` examples
// a step of the global count.
std::unique_ptr<Hook> ReportProgress(Endpoint loss, int64_t last_step, int64_t batch,
                                     absl::Duration every,
                                     std::function<void(const Progress&)> show);
// One line as people read it: "step 120/600  loss 0.2314  45210 examples/s  3s left".
std::string ProgressText(const Progress& progress);
// Shows one live line on a terminal, also on that of `weft run`, plain lines elsewhere (NO_COLOR
// and TERM=dumb count as elsewhere).
std::function<void(const Progress&)> ProgressPrinter();

}  // namespace weft::train
