// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/layer_names.h"

#include <cctype>

namespace weft::estimator {
namespace {

bool IsUpper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool IsLower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

}  // namespace

// Keras puts "_" before an upper letter that lower ones follow (but for the first letter), then
// between a lower letter and an upper one.
std::string SnakeCase(const std::string& class_name) {
  std::string out;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const char c = class_name[i];
    if (i > 0 && IsUpper(c)) {
      const char before = class_name[i - 1];
      const bool begins_word = i + 1 < class_name.size() && IsLower(class_name[i + 1]);
      if (begins_word || IsLower(before)) out += '_';
    }
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace weft::estimator
