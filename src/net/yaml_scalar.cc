// SPDX-License-Identifier: Apache-2.0
#include "net/yaml_scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace weft {
namespace {

const absl::flat_hash_map<std::string, Json>& Words() {
  static const auto* const words = [] {
    auto* all = new absl::flat_hash_map<std::string, Json>;
    for (const char* word : {"", "~", "null", "Null", "NULL"}) all->emplace(word, Json());
    for (const char* word :
         {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}) {
      all->emplace(word, Json(true));
    }
    for (const char* word :
         {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}) {
      all->emplace(word, Json(false));
    }
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const char* word : {".inf", ".Inf", ".INF", "+.inf"}) all->emplace(word, Json(kInfinity));
    for (const char* word : {"-.inf", "-.Inf", "-.INF"}) all->emplace(word, Json(-kInfinity));
    for (const char* word : {".nan", ".NaN", ".NAN"}) all->emplace(word, Json(std::nan("")));
    return all;
  }();
  return *words;
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  const bool negative = absl::StartsWith(text, "-");
  if (negative || absl::StartsWith(text, "+")) text.remove_prefix(1);
  int base = 10;
  for (const auto& [prefix, prefix_base] :
       {std::pair{"0x", 16}, {"0X", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}}) {
    const absl::string_view start(prefix);
    if (text.size() > start.size() && absl::StartsWith(text, start)) {
      base = prefix_base;
      text.remove_prefix(start.size());
      break;
    }
  }
  uint64_t value = 0;
  if (text.empty()) return std::nullopt;
  for (const char c : text) {
    const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
    const int digit = lower >= '0' && lower <= '9'   ? lower - '0'
                      : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                     : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, static_cast<uint64_t>(base), &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value)) {
      return std::nullopt;
    }
  }
  if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

// [-+]? ( digits [. digits*] | . digits ) ( e [-+]? digits )?
bool LooksLikeFloat(absl::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t whole = digits();
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

Json ResolveYamlScalar(const std::string& text) {
  const auto word = Words().find(text);
  if (word != Words().end()) return word->second;
  if (text.size() > 400) return Json(text);
  if (const std::optional<int64_t> integer = ParseInteger(text)) return Json(*integer);
  double number = 0;
  if (LooksLikeFloat(text) && absl::SimpleAtod(text, &number)) return Json(number);
  return Json(text);
}

}  // namespace weft
