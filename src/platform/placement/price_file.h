// SPDX-License-Identifier: Apache-2.0
// What kinds of nodes cost, as people write it down.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace weft::platform {

inline constexpr char kPriceFormat[] = "weft.dev/prices";
inline constexpr int kPriceVersion = 1;

// Dollars an hour by kind of node:
//   {"format": "weft.dev/prices", "version": 1, "hourly": {"p3.8xlarge": 9.5}}
// or, without a format, the kinds alone: {"p3.8xlarge": 9.5}. InvalidArgument, naming the file and
// the place, for another version, what is no number, and prices below 0.
StatusOr<std::map<std::string, double>> ParsePrices(const std::string& text,
                                                    const std::string& file);

}  // namespace weft::platform
