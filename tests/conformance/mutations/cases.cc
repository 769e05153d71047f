// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

#include "base/files.h"

namespace weft::mutations {
StatusOr<Cases> ReadCases(const std::string& path) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  Cases cases;
  std::string op;
  for (absl::string_view rest = bytes; !rest.empty();) {
    uint32_t length = 0;
    if (rest.size() < 5) return DataLoss("The file of cases ends within a frame");
    std::memcpy(&length, rest.data() + 1, 4);
    if (rest.size() - 5 < length) return DataLoss("The file of cases ends within a frame");
    const std::string frame(rest.substr(5, length));
    bool is_good = true;
    if (rest[0] == 'O') {
      if (cases.empty() || frame != op) cases.emplace_back();
      op = frame;
    } else if (rest[0] == 'G' && !cases.empty()) {
      cases.back().push_back({.op = op});
      is_good = cases.back().back().graph.ParseFromString(frame);
    } else if (rest[0] == 'R' && !cases.empty() && !cases.back().empty()) {
      is_good = cases.back().back().steps.emplace_back().ParseFromString(frame);
    } else {
      is_good = false;
    }
    if (!is_good) return DataLoss("The file of cases is malformed");
    rest.remove_prefix(5 + length);
  }
  if (cases.empty()) return DataLoss("The file holds no cases");
  return cases;
}

}  // namespace weft::mutations
