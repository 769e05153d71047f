// SPDX-License-Identifier: Apache-2.0
// A watch stream in pieces of any size: the same events come whole, and an error ends it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "platform/object/fields.h"
#include "platform/store/kubernetes/watch_reader.h"

namespace {

using weft::platform::WatchEvent;

struct Told {
  std::vector<std::string> events;
  absl::Status status;
  std::string revision;
};

Told Read(const std::string& text, size_t piece) {
  Told told;
  weft::platform::WatchReader reader(&weft::platform::Pods(), [&](const WatchEvent& event) {
    if (event.object == nullptr || weft::platform::RevisionOf(*event.object).empty()) std::abort();
    told.events.push_back(
        absl::StrCat(static_cast<int>(event.kind), weft::platform::RevisionOf(*event.object)));
  });
  for (size_t at = 0; at < text.size() && told.status.ok(); at += piece) {
    told.status = reader.Take(absl::string_view(text).substr(at, piece));
  }
  told.revision = reader.revision();
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0] % 16;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const Told whole = Read(text, text.size() + 1);
  const Told parts = Read(text, piece);
  if (whole.events != parts.events || whole.revision != parts.revision) std::abort();
  if (whole.status.code() != parts.status.code()) std::abort();
  return 0;
}
