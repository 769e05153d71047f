// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/share.h"

#include "absl/strings/str_cat.h"

namespace weft::replicate {

std::optional<int> Share::UniformPower() const {
  if (is_whole()) return 0;
  if (!is_equal()) return std::nullopt;
  if (!elements) return scale;
  int power = 0;
  for (size_t i = 0; i < elements->size(); ++i) {
    if (i == 0) power = (*elements)[i].power;
    if ((*elements)[i].power != power) return std::nullopt;
  }
  return power;
}

std::string Share::ToString() const {
  switch (kind) {
    case Kind::kWhole:
      return late ? "a value of the whole batch" : "a value that does not depend on the batch";
    case Kind::kEqual:
      return "a size";
    case Kind::kSlice:
      return absl::StrCat("rows of dimension ", dim);
    case Kind::kPart:
      return "a part of a sum";
  }
  return "";
}

}  // namespace weft::replicate
