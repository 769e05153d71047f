// SPDX-License-Identifier: Apache-2.0
#include "weft/train/hooks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "proto/tensorflow/event.pb.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/storage/event_file.h"
#include "weft/train/schedule.h"

namespace weft::train {
namespace {

class StopHook final : public Hook {
 public:
  explicit StopHook(int64_t last_step) : last_step_(last_step) {}
  bool Done(int64_t global_step) override { return global_step >= last_step_; }
  Status AfterRun(const StepContext& context) override {
    if (Done(context.global_step)) *context.stop = true;
    return absl::OkStatus();
  }

 private:
  const int64_t last_step_;
};

class SummaryHook final : public Hook {
 public:
  SummaryHook(std::string folder, const Every& every, const Clock& clock)
      : folder_(std::move(folder)), clock_(clock), schedule_(every, clock) {}

  Status Begin(Program& program) override {
    const Endpoint merged = program.MergedSummaries();
    WEFT_RETURN_IF_ERROR(program.status());
    if (merged.node != nullptr) fetch_ = merged.node->name() + ":0";
    WEFT_ASSIGN_OR_RETURN(graph_, SerializeGraphDef(ExportGraph(program.graph())));
    return absl::OkStatus();
  }
  Status AfterCreate(session::Session&, int64_t) override {
    if (writer_ != nullptr) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(writer_, storage::EventFileWriter::Create(files_, clock_, folder_, {}));
    return writer_->WriteGraph(graph_);
  }
  std::vector<std::string> Fetches() override {
    if (fetch_.empty() || !due_) return {};
    return {fetch_};
  }
  Status AfterRun(const StepContext& context) override {
    Status status;
    if (!context.values->empty() && writer_ != nullptr) {
      status =
          writer_->WriteSummary(context.global_step, (*context.values)[0].scalar<std::string>());
      schedule_.Done(context.global_step);
    }
    due_ = schedule_.IsDue(context.global_step + 1);
    return status;
  }
  Status End(session::Session&, int64_t) override {
    return writer_ != nullptr ? writer_->Flush() : absl::OkStatus();
  }

 private:
  const std::string folder_;
  RealFileSystem files_;
  const Clock& clock_;
  Schedule schedule_;
  std::string fetch_;
  std::string graph_;
  std::unique_ptr<storage::EventFileWriter> writer_;
  bool due_ = true;
};

class CountHook final : public Hook {
 public:
  CountHook(std::string folder, const Every& every, const Clock& clock)
      : folder_(std::move(folder)), clock_(clock), schedule_(every, clock) {}

  Status AfterCreate(session::Session&, int64_t global_step) override {
    schedule_.Done(global_step);
    if (folder_.empty() || writer_ != nullptr) return absl::OkStatus();
    // Beside a SummaryHook's file of the same second.
    WEFT_ASSIGN_OR_RETURN(writer_, storage::EventFileWriter::Create(files_, clock_, folder_, {}));
    return absl::OkStatus();
  }
  Status AfterRun(const StepContext& context) override {
    if (!schedule_.IsDue(context.global_step)) return absl::OkStatus();
    const double seconds = absl::ToDoubleSeconds(clock_.Monotonic() - schedule_.last_time());
    const auto steps = static_cast<double>(context.global_step - schedule_.last_step());
    schedule_.Done(context.global_step);
    if (seconds <= 0) return absl::OkStatus();
    WEFT_LOG(INFO) << "global_step/sec: " << absl::StrFormat("%.6g", steps / seconds) << " at step "
                   << context.global_step;
    if (writer_ == nullptr) return absl::OkStatus();
    tensorflow::Event event;
    event.set_step(context.global_step);
    tensorflow::Summary::Value* const value = event.mutable_summary()->add_value();
    value->set_tag("global_step/sec");
    value->set_simple_value(static_cast<float>(steps / seconds));
    return writer_->Write(event);
  }
  Status End(session::Session&, int64_t) override {
    return writer_ != nullptr ? writer_->Flush() : absl::OkStatus();
  }

 private:
  const std::string folder_;
  RealFileSystem files_;
  const Clock& clock_;
  Schedule schedule_;
  std::unique_ptr<storage::EventFileWriter> writer_;
};

class ProgressHook final : public Hook {
 public:
  ProgressHook(Endpoint loss, int64_t last_step, int64_t batch, absl::Duration every,
               std::function<void(const Progress&)> show)
      : loss_(absl::StrCat(loss.node != nullptr ? loss.node->name() : "", ":", loss.port)),
        last_step_(last_step),
        batch_(batch),
        every_(every),
        show_(std::move(show)) {}

  Status AfterCreate(session::Session&, int64_t global_step) override {
    first_step_ = global_step;
    started_ = absl::Now();
    return absl::OkStatus();
  }
  std::vector<std::string> Fetches() override { return {loss_}; }
  Status AfterRun(const StepContext& context) override {
    // Workers that do not wait for each other may go a step too far.
    last_ = {.step = std::min(context.global_step, last_step_), .last_step = last_step_};
    if (!context.values->empty() && (*context.values)[0].dtype() == DType::kFloat) {
      last_.loss = (*context.values)[0].scalar<float>();
    }
    const absl::Time now = absl::Now();
    const double seconds = absl::ToDoubleSeconds(now - started_);
    const auto steps = static_cast<double>(context.global_step - first_step_);
    if (steps > 0 && seconds > 0) {
      last_.examples_per_second = steps * static_cast<double>(batch_) / seconds;
      last_.left =
          absl::Seconds(seconds / steps * static_cast<double>(last_step_ - context.global_step));
    }
    if (now - shown_ < every_) return absl::OkStatus();
    shown_ = now;
    show_(last_);
    return absl::OkStatus();
  }
  Status End(session::Session&, int64_t global_step) override {
    if (last_.last_step == 0) return absl::OkStatus();  // no step was run
    last_.step = std::min(std::max(last_.step, global_step), last_step_);
    last_.is_last = true;
    show_(last_);
    return absl::OkStatus();
  }

 private:
  const std::string loss_;
  const int64_t last_step_;
  const int64_t batch_;
  const absl::Duration every_;
  const std::function<void(const Progress&)> show_;
  int64_t first_step_ = 0;
  absl::Time started_ = absl::Now();
  absl::Time shown_ = absl::InfinitePast();
  Progress last_;
};

}  // namespace

std::unique_ptr<Hook> StopAtStep(int64_t last_step) {
  return std::make_unique<StopHook>(last_step);
}
std::unique_ptr<Hook> WriteSummaries(std::string folder, Every every, const Clock* clock) {
  return std::make_unique<SummaryHook>(std::move(folder), every, ClockOr(clock));
}
std::unique_ptr<Hook> CountSteps(std::string folder, Every every, const Clock* clock) {
  return std::make_unique<CountHook>(std::move(folder), every, ClockOr(clock));
}
std::unique_ptr<Hook> ReportProgress(Endpoint loss, int64_t last_step, int64_t batch,
                                     absl::Duration every,
                                     std::function<void(const Progress&)> show) {
  return std::make_unique<ProgressHook>(loss, last_step, batch, every, std::move(show));
}

std::string ProgressText(const Progress& progress) {
  std::string text =
      absl::StrFormat("step %d/%d  loss %.4f", progress.step, progress.last_step, progress.loss);
  if (progress.examples_per_second > 0) {
    absl::StrAppendFormat(&text, "  %.0f examples/s", progress.examples_per_second);
  }
  if (!progress.is_last && progress.left < absl::InfiniteDuration()) {
    const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(progress.left));
    if (seconds >= 3600) {
      absl::StrAppendFormat(&text, "  %dh%02dm left", seconds / 3600, seconds / 60 % 60);
    } else if (seconds >= 60) {
      absl::StrAppendFormat(&text, "  %dm%02ds left", seconds / 60, seconds % 60);
    } else {
      absl::StrAppendFormat(&text, "  %ds left", seconds);
    }
  }
  return text;
}

std::function<void(const Progress&)> ProgressPrinter() {
  const char* term = std::getenv("TERM");
  const bool live = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr &&
                    term != nullptr && std::string(term) != "dumb";
  // `weft run` reads our output, and has a terminal.
  const char* passed_on = std::getenv("WEFT_LIVE");
  const bool live_there = passed_on != nullptr && std::string(passed_on) == "1";
  return [live, live_there](const Progress& progress) {
    const std::string text = ProgressText(progress);
    const bool stays = progress.is_last || !(live || live_there);
    std::printf("%s%s%s", live ? "\r\033[K" : "", text.c_str(), stays ? "\n" : live ? "" : "\r");
    std::fflush(stdout);
  };
}

}  // namespace weft::train
