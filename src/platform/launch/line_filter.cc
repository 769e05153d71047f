// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/line_filter.h"

#include <utility>

namespace weft::platform {
namespace {
constexpr size_t kLongestLine = 1 << 20;
constexpr size_t kLongestSequence = 64;
}  // namespace

void LineFilter::Feed(absl::string_view data, absl::Duration now, std::vector<std::string>* lines) {
  for (const char c : data) {
    if (c == '\n') {
      has_return_ = false;
      EndLine(lines);
      continue;
    }
    if (has_return_ && c != '\r') {
      // Only now is it clear that the return was not half of a line end.
      has_return_ = false;
      if (!line_.empty()) progress_ = std::exchange(line_, "");
      is_overwriting_ = true;
    }
    if (c == '\r') {
      has_return_ = true;
      continue;
    }
    if (Filter(c)) continue;
    line_.push_back(c);
    if (line_.size() >= kLongestLine) EndLine(lines);
  }
  if (has_return_ && !line_.empty()) progress_ = line_;
  Tick(now, lines);
}

bool LineFilter::Filter(char c) {
  switch (escape_) {
    case Escape::kNone:
      if (c == '\x1b') escape_ = Escape::kStarted;
      // Bells and backspaces; a tab is text.
      return static_cast<unsigned char>(c) < 0x20 && c != '\t';
    case Escape::kStarted:
      escape_ = c == '[' ? Escape::kSequence : Escape::kNone;
      sequence_ = "\x1b[";
      return true;
    case Escape::kSequence:
      sequence_.push_back(c);
      if (c >= '@' && c <= '~') {
        if (c == 'm') line_.append(sequence_);
        escape_ = Escape::kNone;
      } else if (sequence_.size() > kLongestSequence) {
        escape_ = Escape::kNone;
      }
      return true;
  }
  return false;
}

void LineFilter::EndLine(std::vector<std::string>* lines) {
  // "100 %\r" and then "\n": the bar itself is the line.
  if (line_.empty() && is_overwriting_) line_ = std::exchange(progress_, "");
  if (!line_.empty() || !is_overwriting_) lines->push_back(std::exchange(line_, ""));
  progress_.clear();
  is_overwriting_ = false;
}

void LineFilter::Tick(absl::Duration now, std::vector<std::string>* lines) {
  if (progress_.empty() || now < next_progress_) return;
  // Shown: if nothing overwrites it, its line end need not show it again.
  if (progress_ == line_) line_.clear();
  lines->push_back(std::exchange(progress_, ""));
  if (keep_returns_) lines->back().push_back('\r');
  is_overwriting_ = true;
  next_progress_ = now + period_;
}

void LineFilter::Finish(std::vector<std::string>* lines) {
  if (line_.empty()) line_ = std::exchange(progress_, "");
  if (!line_.empty()) lines->push_back(std::exchange(line_, ""));
  progress_.clear();
  has_return_ = false;
  is_overwriting_ = false;
}

}  // namespace weft::platform
