// SPDX-License-Identifier: Apache-2.0
// Amounts of resources as Kubernetes writes them: 2, "500m", "1.5Gi", "1e3".
#pragma once

#include <cstdint>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// Exact, as an API server reads and writes it. What is finer than a billionth is rounded up, what
// is more than 2^63 - 1 becomes that.
class Quantity {
 public:
  Quantity() = default;
  // InvalidArgument: "holds "0,1,3", ...", without a path.
  static StatusOr<Quantity> Parse(const Json& value);

  bool is_negative() const { return billionths_ < 0; }
  bool is_whole() const;
  bool is_finer_than_thousandths() const { return billionths_ % 1000000 != 0; }
  // Above zero, and so many times `part`.
  bool IsMultipleOf(const Quantity& part) const {
    return billionths_ > 0 && part.billionths_ > 0 && billionths_ % part.billionths_ == 0;
  }
  int64_t Thousandths() const;  // rounded up; at most 2^63 - 1
  // In the shortest form that loses nothing: "1500m", "1536Mi", "1e3".
  std::string ToString() const;

  bool operator==(const Quantity& other) const { return billionths_ == other.billionths_; }
  bool operator<(const Quantity& other) const { return billionths_ < other.billionths_; }

 private:
  enum class Form { kDecimal, kBinary, kExponent };
  absl::int128 billionths_ = 0;
  Form form_ = Form::kDecimal;
};

// In thousandths, rounded up, of what is not below zero and not more than anything has.
StatusOr<int64_t> ParseQuantity(const Json& value);

// How to write what is no amount but a list of devices, "0,1,3", which the first cluster with GPUs
// took for one; empty for all else.
std::string DeviceListHint(absl::string_view name, const Json& value);

// The shortest of "2", "1500m" and, with `is_binary`, "3Gi".
std::string FormatQuantity(int64_t thousandths, bool is_binary);

}  // namespace weft::platform
