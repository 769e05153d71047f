// SPDX-License-Identifier: Apache-2.0
// What a search varies: parameters, their ranges, and points in them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::platform {

// One parameter. Numbers lie in [low, high]; a value of a choice is its index.
struct SearchParameter {
  enum class Kind { kDouble, kInt, kChoice };
  std::string name;
  Kind kind = Kind::kDouble;
  double low = 0;
  double high = 1;
  bool logarithmic = false;          // numbers are as likely in each power of ten
  double step = 0;                   // of numbers, from low on; 0: any double, each int
  std::vector<std::string> choices;  // at least one, for kChoice alone
  // Only tried where the parameter of this index, which stands before, has one of these values; -1:
  // always.
  int depends_on = -1;
  std::vector<double> depends_on_values;

  // Values that the parameter can take; 0: uncountable.
  int64_t size() const;
  // Position of a value in [0, 1], and the value at a position (clamped to [0, 1]).
  double ToUnit(double value) const;
  double FromUnit(double position) const;
  // As a program reads it: `0.001`, `12`, `adam`; empty for a NaN, which stands for no value.
  std::string Format(double value) const;
  // The reverse; InvalidArgument that names the parameter.
  StatusOr<double> Parse(absl::string_view text) const;
};

struct SearchSpace {
  std::vector<SearchParameter> parameters;  // names differ

  // The values at a position in [0, 1] each; NaN where the condition does not hold.
  std::vector<double> At(const std::vector<double>& position) const;
  // Makes those values NaN whose condition does not hold.
  void DropInactive(std::vector<double>* values) const;
  // The parameters that have a value, by name and as text.
  std::vector<std::pair<std::string, std::string>> Assign(const std::vector<double>& values) const;
  // The reverse: a parameter that is not named has no value. InvalidArgument names what makes no
  // sense.
  StatusOr<std::vector<double>> ReadAssignments(
      const std::vector<std::pair<std::string, std::string>>& assignments) const;
};

// Reads `lr=log(1e-4,1e-1) layers=2..5 width=16..128/16 rate=0.1..0.5 optimizer={sgd,adam,ftrl}`:
// a..b of whole numbers is an int, /s a step; `momentum=0.0..0.99?optimizer=sgd|rms` is tried with
// these values of a choice before it only. InvalidArgument that names what was not understood.
StatusOr<SearchSpace> ParseSearchSpace(absl::string_view text);

}  // namespace weft::platform
