// SPDX-License-Identifier: Apache-2.0
// A TFJob or a Tensorflow as its API server keeps it, typed: what those ask for who do not need the
// whole of its spec (TfJob reads that). Borrows the object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

class TrainingJobView {
 public:
  explicit TrainingJobView(const Json& job) : json_(job) {}

  // The first API version has its clean-up policy right under spec, where the server puts its
  // default.
  bool is_v1beta1() const;
  bool is_suspended() const;
  std::string managed_by() const;
  // After its end, wherever the spec says it; none: for ever.
  std::optional<absl::Duration> time_to_live() const;

  // An empty mapping where there is none.
  const Json& status() const;
  const Json* restarts() const;  // status.restarts, or null
  bool has_succeeded() const;
  bool has_failed() const;
  bool is_finished() const { return has_succeeded() || has_failed(); }
  std::string failure() const;  // what its condition says

 private:
  const Json& json_;
};

}  // namespace weft::platform
