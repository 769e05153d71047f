// SPDX-License-Identifier: Apache-2.0
#include "apps/live_table.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace weft::apps {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(200);
constexpr size_t kMostRunning = 16;

size_t Columns(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

LiveTable::LiveTable(std::FILE* stream, const platform::Study& study,
                     const platform::LocalTrialsOptions& options)
    : stream_(stream),
      study_(study),
      options_(options),
      is_terminal_(::isatty(::fileno(stream)) == 1) {}

void LiveTable::Clear() {
  if (lines_ > 0) std::fprintf(stream_, "\x1b[%dA\x1b[J", lines_);
  lines_ = 0;
  std::fflush(stream_);
}

void LiveTable::Show(const std::vector<platform::LocalTrials::Running>& running) {
  const absl::Time now = absl::Now();
  if (!is_terminal_ || now - last_ < kPeriod) return;
  last_ = now;
  Clear();
  for (const std::string& line : LiveLines(study_, options_, running, now, Columns(stream_))) {
    std::fprintf(stream_, "%s\n", line.c_str());
    ++lines_;
  }
  std::fflush(stream_);
}

std::vector<std::string> LiveLines(const platform::Study& study,
                                   const platform::LocalTrialsOptions& options,
                                   const std::vector<platform::LocalTrials::Running>& running,
                                   absl::Time now, size_t columns) {
  int64_t succeeded = 0, failed = 0;
  for (const platform::SearchTrial& trial : study.trials()) {
    succeeded += trial.state == platform::SearchTrial::State::kSucceeded ? 1 : 0;
    failed += trial.state == platform::SearchTrial::State::kFailed ? 1 : 0;
  }
  std::string head =
      absl::StrFormat("%d running, %d done, %d failed", running.size(), succeeded, failed);
  if (options.trials < INT64_MAX) absl::StrAppend(&head, " of ", options.trials);
  if (const platform::SearchTrial* const best = study.best()) {
    absl::StrAppend(&head, "   best ", options.objective.metric, "=", best->objective, " of trial-",
                    best->number);
  }
  std::vector<std::string> lines = {std::move(head)};
  for (size_t i = 0; i < std::min(running.size(), kMostRunning); ++i) {
    const platform::LocalTrials::Running& trial = running[i];
    std::string line =
        absl::StrFormat("  trial-%d %ds", trial.number, absl::ToInt64Seconds(now - trial.started));
    for (const auto& [name, values] : *trial.series) {
      if (!values.empty()) absl::StrAppend(&line, "  ", name, "=", values.back());
    }
    for (const auto& [name, value] :
         study.space().Assign(study.trials()[static_cast<size_t>(trial.number)].values))
      absl::StrAppend(&line, "  ", name, "=", value);
    lines.push_back(std::move(line));
  }
  // A line that wraps would be two to take back.
  for (std::string& line : lines) line.resize(std::min(line.size(), columns - 1));
  return lines;
}

}  // namespace weft::apps
