// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/process_report.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/files.h"
#include "base/log.h"
#include "net/utf8.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kLongestMessage = 4096;
constexpr size_t kLongestLine = 300;
constexpr absl::Duration kWritePeriod = absl::Seconds(1);

std::string Shorten(absl::string_view line) {
  if (line.size() <= kLongestLine) return std::string(line);
  return absl::StrCat(CutUtf8(line, kLongestLine), "...");
}

}  // namespace

std::optional<Json> ParseProgressLine(absl::string_view line) {
  // As `weft exec` prints those of several processes: "[worker-0] step 120/1000".
  const size_t close = absl::StartsWith(line, "[") ? line.find("] ") : absl::string_view::npos;
  if (close != absl::string_view::npos) line.remove_prefix(close + 2);
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() < 2 || words[0] != "step") return std::nullopt;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(words[1], absl::MaxSplits('/', 1));
  int64_t step = 0;
  int64_t steps = 0;
  if (!absl::SimpleAtoi(parts.first, &step) || !absl::SimpleAtoi(parts.second, &steps))
    return std::nullopt;
  Json progress;
  progress.Set("step", step);
  progress.Set("steps", steps);
  // Names with numbers behind them: "loss 0.25", "accuracy=0.9,".
  for (size_t i = 2; i < words.size(); ++i) {
    std::pair<std::string, std::string> named = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (named.second.empty() && i + 1 < words.size()) named.second = words[i + 1];
    double value = 0;
    const bool is_name =
        !named.first.empty() && absl::ascii_isalpha(static_cast<unsigned char>(named.first[0]));
    if (is_name && absl::SimpleAtod(absl::StripSuffix(named.second, ","), &value))
      progress.Set(named.first, value);
  }
  return progress;
}

void ProcessReport::Hear(const std::string& process, absl::string_view line) {
  absl::MutexLock lock(&mutex_);
  if (std::optional<Json> progress = ParseProgressLine(line)) {
    progress_.Set(process, *std::move(progress));
  } else if (!absl::StripAsciiWhitespace(line).empty()) {
    last_line_.Set(process, Shorten(line));
  }
  has_news_ = true;
}

void ProcessReport::Show(Json state, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const bool is_other = !SameJson(state, state_);
  if (!is_other && (!has_news_ || now - written_ < kWritePeriod)) return;
  state_ = std::move(state);
  has_news_ = false;
  written_ = now;
  Write();
}

Json ProcessReport::Whole() const {
  Json whole = state_;
  Json* const processes = whole.FindMutable("processes");
  if (processes == nullptr) return whole;
  for (Json& process : *processes->mutable_items()) {
    const std::string name = StringField(process, {"name"});
    if (const Json* const progress = progress_.Find(name)) process.Set("progress", *progress);
    if (const Json* const line = last_line_.Find(name)) process.Set("lastLine", *line);
  }
  return whole;
}

void ProcessReport::Write() {
  if (file_.empty()) return;
  RealFileSystem files;
  const std::string beside = file_ + ".new";
  Status status = WriteFile(files, beside, Whole().Dump() + "\n");
  if (status.ok()) status = files.Rename(beside, file_);
  if (status.ok() || has_complained_) return;
  has_complained_ = true;
  WEFT_LOG(WARNING) << "The state of the processes is not written: " << status.message();
}

std::string ProcessReport::Text() const {
  absl::MutexLock lock(&mutex_);
  return Whole().Dump() + "\n";
}

bool ProcessReport::IsHealthy() const {
  absl::MutexLock lock(&mutex_);
  return BoolField(state_, {"healthy"});
}

std::string ProcessReport::TerminationMessage() const {
  absl::MutexLock lock(&mutex_);
  Json whole = Whole();
  whole.Set("more", false);
  Json* const processes = whole.FindMutable("processes");
  std::string text = whole.Dump();
  // From the last: the first are those that people look for.
  for (size_t i = processes == nullptr ? 0 : processes->size();
       text.size() > kLongestMessage && i > 0; --i) {
    (*processes->mutable_items())[i - 1].Erase("lastLine");
    text = whole.Dump();
  }
  while (text.size() > kLongestMessage && processes != nullptr && processes->size() > 0) {
    processes->mutable_items()->pop_back();
    *whole.FindMutable("more") = Json(true);
    text = whole.Dump();
  }
  return text;
}

}  // namespace weft::platform
