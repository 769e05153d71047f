// SPDX-License-Identifier: Apache-2.0
#include "platform/object/quantity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/field_reader.h"

namespace weft::platform {
namespace {

constexpr char kAllowed[] = "a quantity is allowed, as 2, \"500m\" or \"4Gi\"";
// What thousandths in 63 bits hold, with some room for sums.
constexpr double kMost = 1e15;

// 0 for what is no suffix.
double FactorOf(absl::string_view suffix) {
  static constexpr std::pair<absl::string_view, double> kFactors[] = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  for (const auto& [name, factor] : kFactors) {
    if (name == suffix) return factor;
  }
  return 0;
}

}  // namespace

StatusOr<int64_t> ParseQuantity(const Json& value) {
  const Status wrong = InvalidArgument(HoldsButAllowed(value, kAllowed));
  std::string text = value.is_string() ? value.AsString().value_or("") : "";
  if (value.is_number()) text = value.Dump();
  size_t end = text.find_first_not_of("0123456789.+-");
  // "1e3", but not "1E", an exa.
  if (end != std::string::npos && (text[end] == 'e' || text[end] == 'E') && end + 1 < text.size() &&
      text[end + 1] != 'i') {
    end = text.find_first_not_of("0123456789+-", end + 1);
  }
  if (end == std::string::npos) end = text.size();
  const double factor = FactorOf(absl::string_view(text).substr(end));
  double number = 0;
  if (end == 0 || factor == 0 || !absl::SimpleAtod(text.substr(0, end), &number)) return wrong;
  const double amount = number * factor;
  if (!std::isfinite(amount) || amount < 0 || amount > kMost) return wrong;
  return static_cast<int64_t>(std::ceil(amount * 1000 - 1e-6));
}

std::string FormatQuantity(int64_t thousandths, bool is_binary) {
  if (thousandths % 1000 != 0) return absl::StrCat(thousandths, "m");
  int64_t whole = thousandths / 1000;
  if (!is_binary || whole == 0) return absl::StrCat(whole);
  static constexpr const char* kSuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t step = 0;
  while (whole % 1024 == 0 && step + 1 < std::size(kSuffixes)) {
    whole /= 1024;
    ++step;
  }
  return absl::StrCat(whole, kSuffixes[step]);
}

}  // namespace weft::platform
