// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/price_file.h"

#include "absl/strings/str_cat.h"

#include "net/json.h"

namespace weft::platform {
namespace {

// The kinds and what they cost: all of the file, or what its format says.
StatusOr<Json> HourlyOf(const Json& json, const std::string& file) {
  const Json* const format = json.Find("format");
  if (format == nullptr) return json;
  const StatusOr<std::string> name = format->AsString();
  if (!name.ok() || *name != kPriceFormat) {
    return InvalidArgument(file, ": format: expected ", kPriceFormat, ", found ",
                           name.ok() ? *name : format->Describe());
  }
  const Json* const version = json.Find("version");
  const StatusOr<int64_t> number =
      version == nullptr ? StatusOr<int64_t>(InvalidArgument("there is none")) : version->AsInt();
  if (!number.ok()) return InvalidArgument(file, ": version: expected ", kPriceVersion);
  if (*number != kPriceVersion) {
    return InvalidArgument(file, ": price file of version ", *number, ", this weft reads ",
                           kPriceVersion);
  }
  const Json* const hourly = json.Find("hourly");
  if (hourly == nullptr)
    return InvalidArgument(file, ": hourly: expected dollars an hour by kind of node");
  return *hourly;
}

}  // namespace

StatusOr<std::map<std::string, double>> ParsePrices(const std::string& text,
                                                    const std::string& file) {
  StatusOr<Json> json = Json::Parse(text);
  if (!json.ok()) return Annotate(json.status(), file);
  if (!json->is_object())
    return InvalidArgument(file, ": expected dollars an hour by shape, found ", json->Describe());
  WEFT_ASSIGN_OR_RETURN(const Json hourly, HourlyOf(*json, file));
  if (!hourly.is_object()) {
    return InvalidArgument(file, ": hourly: expected dollars an hour by kind of node, found ",
                           hourly.Describe());
  }
  std::map<std::string, double> prices;
  for (const JsonMember& member : hourly.members()) {
    const StatusOr<double> price = member.value.AsDouble();
    if (!price.ok()) return Annotate(price.status(), absl::StrCat(file, ": ", member.name));
    if (!(*price >= 0)) return InvalidArgument(file, ": ", member.name, ": a price is 0 or more");
    prices[member.name] = *price;
  }
  return prices;
}

}  // namespace weft::platform
