// SPDX-License-Identifier: Apache-2.0
// What carries tensors between tasks: TCP, or UCX where an adapter for RDMA is there.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace weft::cluster {

struct CarrierChoice {
  bool is_ucx = false;
  std::string why;  // for the log: "Tensors between tasks travel by TCP: ..."
};

struct CarrierFacts {
  std::string wish;                   // "tcp", "ucx"; "auto" or empty: this function decides
  bool needs_tls = false;             // the job's tasks speak TLS, which UCX does not have
  std::vector<std::string> adapters;  // that could send now
  Status ucx;                         // OK where UCX can be used
};

// InvalidArgument for another wish; FailedPrecondition for UCX with TLS, never in the clear then;
// what `ucx` says for UCX that is not there.
StatusOr<CarrierChoice> ChooseCarrier(const CarrierFacts& facts);

// The same with what this machine has.
StatusOr<CarrierChoice> ChooseCarrier(const std::string& wish, bool needs_tls);

}  // namespace weft::cluster
