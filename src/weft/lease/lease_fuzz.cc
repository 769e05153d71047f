// SPDX-License-Identifier: Apache-2.0
// Whatever calls come and whatever lines a journal has: the book lives, and counts no record twice.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weft/lease/lease_call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  weft::FakeClock clock;
  weft::lease::LeaseBook book(&clock);
  const weft::lease::QueueSpec spec{.name = "q", .records = 10, .per_lease = 3, .epochs = 2};
  if (!book.Define(spec).ok()) std::abort();
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    (void)book.Replay(line);
    const weft::StatusOr<weft::Json> call = weft::Json::Parse(line);
    if (call.ok()) (void)weft::lease::AnswerLeaseCall(&book, *call);
    clock.Advance(absl::Seconds(100));
    at = end + 1;
  }
  const weft::StatusOr<weft::lease::QueueCounts> counts = book.Counts("q");
  if (!counts.ok() || counts->records_done > 20) std::abort();
  return 0;
}
