// SPDX-License-Identifier: Apache-2.0
#include "platform/object/quantity.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/field_reader.h"

namespace weft::platform {
namespace {

constexpr char kAllowed[] = "a quantity is allowed, as 2, \"500m\" or \"4Gi\"";
// What thousandths in 63 bits hold, with some room for sums.
constexpr int64_t kMost = 1000000000000000;
constexpr int kPlaces = 9;            // behind the point
constexpr int kMostBinaryPlaces = 9;  // so that the shift fits
constexpr int kMostPlaces = 20;
constexpr int kMostExponent = 300;

struct Suffix {
  absl::string_view text;
  int tens;  // 10^tens, or
  int twos;  // 2^twos
};
constexpr Suffix kSuffixes[] = {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},
                                {"k", 3, 0},   {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0},
                                {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
                                {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};

struct Written {
  bool is_negative = false;
  std::string whole;
  std::string places;
  absl::string_view suffix;
};

bool TakeDigits(absl::string_view* text, std::string* digits) {
  while (!text->empty() && absl::ascii_isdigit(text->front())) {
    digits->push_back(text->front());
    text->remove_prefix(1);
  }
  return !digits->empty();
}

bool Split(absl::string_view text, Written* written) {
  written->is_negative = absl::StartsWith(text, "-");
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  const bool has_whole = TakeDigits(&text, &written->whole);
  const bool has_places = absl::ConsumePrefix(&text, ".") && TakeDigits(&text, &written->places);
  written->suffix = text;
  return has_whole || has_places;
}

absl::int128 TimesTens(absl::int128 number, int tens) {
  for (; tens > 0; --tens) number *= 10;
  return number;
}

// Divided by 10^tens, rounded up.
absl::int128 OverTens(absl::int128 number, int tens, bool has_rest) {
  for (; tens > 0; --tens) {
    has_rest = has_rest || number % 10 != 0;
    number /= 10;
  }
  return has_rest ? number + 1 : number;
}

absl::int128 ToNumber(absl::string_view digits) {
  absl::int128 number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

// In billionths, rounded up, of what is known to fit.
absl::int128 Exact(const Written& written, const Suffix& suffix) {
  const size_t most = suffix.twos > 0 ? kMostBinaryPlaces : kMostPlaces;
  const std::string places = written.places.substr(0, most);
  bool has_rest = written.places.find_first_not_of('0', places.size()) != std::string::npos;
  std::string digits = written.whole + places;
  digits.erase(0, digits.find_first_not_of('0'));
  if (suffix.twos > 0) {
    const absl::int128 number = (ToNumber(digits) << suffix.twos) * 1000000000;
    return OverTens(number, static_cast<int>(places.size()), has_rest);
  }
  const int tens = suffix.tens + kPlaces - static_cast<int>(places.size());
  // Digits below a billionth only say that there is a rest.
  const size_t dropped = std::min(digits.size(), static_cast<size_t>(std::max(-tens, 0)));
  const size_t left = digits.size() - dropped;
  has_rest = has_rest || digits.find_first_not_of('0', left) != std::string::npos;
  return TimesTens(ToNumber(digits.substr(0, left)), tens) + (has_rest ? 1 : 0);
}

}  // namespace

StatusOr<Quantity> Quantity::Parse(const Json& value) {
  const Status wrong = InvalidArgument(HoldsButAllowed(value, kAllowed));
  std::string text = value.is_string() ? value.AsString().value_or("") : "";
  if (value.is_number()) text = value.Dump();
  Written written;
  if (!Split(text, &written)) return wrong;
  Quantity quantity;
  Suffix suffix = {"", 0, 0};
  const auto known = std::find_if(std::begin(kSuffixes), std::end(kSuffixes),
                                  [&](const Suffix& one) { return one.text == written.suffix; });
  if (known != std::end(kSuffixes)) {
    suffix = *known;
    if (suffix.twos > 0) quantity.form_ = Form::kBinary;
  } else {
    absl::string_view exponent = written.suffix;
    // Not "1E", an exa, which is known.
    if (!absl::ConsumePrefix(&exponent, "e") && !absl::ConsumePrefix(&exponent, "E")) return wrong;
    if (!absl::SimpleAtoi(exponent, &suffix.tens) || std::abs(suffix.tens) > kMostExponent)
      return wrong;
    quantity.form_ = Form::kExponent;
  }
  double about = 0;
  if (!absl::SimpleAtod(absl::StrCat("0", written.whole, ".", written.places, "0"), &about))
    return wrong;
  about *= std::pow(10.0, suffix.tens) * std::pow(2.0, suffix.twos);
  if (about >= 9.2e18) {
    quantity.billionths_ = TimesTens(std::numeric_limits<int64_t>::max(), kPlaces);
  } else if (about > 0) {
    quantity.billionths_ = Exact(written, suffix);
  }
  if (written.is_negative) quantity.billionths_ = -quantity.billionths_;
  return quantity;
}

bool Quantity::is_whole() const { return billionths_ % 1000000000 == 0; }

int64_t Quantity::Thousandths() const {
  const absl::int128 rounded = OverTens(billionths_, kPlaces - 3, false);
  return rounded > std::numeric_limits<int64_t>::max() ? std::numeric_limits<int64_t>::max()
                                                       : static_cast<int64_t>(rounded);
}

std::string Quantity::ToString() const {
  if (billionths_ == 0) return "0";
  const bool is_below = billionths_ < 0;
  absl::int128 number = is_below ? -billionths_ : billionths_;
  std::string text = is_below ? "-" : "";
  if (form_ == Form::kBinary && number >= absl::int128(1024) * 1000000000) {
    number = OverTens(number, kPlaces, false);
    int twos = 0;
    for (; number % 1024 == 0 && twos < 60; twos += 10) number /= 1024;
    for (const Suffix& suffix : kSuffixes) {
      if (suffix.twos == twos && suffix.tens == 0 && (twos > 0 || suffix.text.empty()))
        return absl::StrCat(text, static_cast<uint64_t>(number), suffix.text);
    }
  }
  int tens = -kPlaces;
  for (; number % 10 == 0 && tens < 18; ++tens) number /= 10;
  for (; tens % 3 != 0; --tens) number *= 10;
  std::string digits;
  for (; number > 0; number /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
  text.append(digits);
  if (tens == 0) return text;
  if (form_ == Form::kExponent) return absl::StrCat(text, "e", tens);
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.tens == tens) return absl::StrCat(text, suffix.text);
  }
  return text;
}

StatusOr<int64_t> ParseQuantity(const Json& value) {
  WEFT_ASSIGN_OR_RETURN(const Quantity quantity, Quantity::Parse(value));
  const int64_t thousandths = quantity.Thousandths();
  if (quantity.is_negative() || thousandths / 1000 > kMost)
    return InvalidArgument(HoldsButAllowed(value, kAllowed));
  return thousandths;
}

std::string DeviceListHint(absl::string_view name, const Json& value) {
  const std::string text = value.AsString().value_or(value.Dump());
  const std::vector<std::string> devices =
      absl::StrSplit(text, absl::ByAnyChar(", []"), absl::SkipEmpty());
  const bool is_list = devices.size() > 1 && absl::c_all_of(devices, [](const std::string& device) {
                         return absl::c_all_of(device, absl::ascii_isdigit);
                       });
  if (!is_list) return "";
  return absl::StrCat(
      ". A number of GPUs is written\n      nvidia.com/gpu: ", devices.size(),
      "\n  and which ones they are, in metadata of the pod,\n      annotations: {\"", name,
      "\": \"", absl::StrJoin(devices, ","), "\"}");
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
