// SPDX-License-Identifier: Apache-2.0
// Lines out of what a program prints, also when it draws a progress bar over itself.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace weft::platform {

// A line that ends in a carriage return is to be overwritten: such lines pass at most once a
// `period`, the last one always. Colours stay; what moves the cursor goes, since it would move it
// among other tasks' lines. A line stops at 1 MiB. Not thread-safe.
class LineFilter {
 public:
  // With `keep_returns` a line that is to be overwritten still ends in its carriage return.
  explicit LineFilter(absl::Duration period, bool keep_returns = false)
      : period_(period), keep_returns_(keep_returns) {}

  // `now` is monotonic. Lines come without their ends.
  void Feed(absl::string_view data, absl::Duration now, std::vector<std::string>* lines);
  // Emits a progress line whose time has come.
  void Tick(absl::Duration now, std::vector<std::string>* lines);
  // When Tick has something to do.
  absl::Duration due() const {
    return progress_.empty() ? absl::InfiniteDuration() : next_progress_;
  }
  // The end of the stream: what is there, even without a line end.
  void Finish(std::vector<std::string>* lines);

 private:
  enum class Escape { kNone, kStarted, kSequence };
  void EndLine(std::vector<std::string>* lines);
  // True: `c` was part of an escape sequence or another control character.
  bool Filter(char c);

  const absl::Duration period_;
  const bool keep_returns_;
  std::string line_;             // since the last line end or carriage return
  std::string progress_;         // the line before the last carriage return, not shown yet
  bool has_return_ = false;      // a carriage return was the last character
  bool is_overwriting_ = false;  // the line began with an overwritten one
  absl::Duration next_progress_ = -absl::InfiniteDuration();
  Escape escape_ = Escape::kNone;
  std::string sequence_;
};

}  // namespace weft::platform
