// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "absl/strings/numbers.h"

#include "weft/server/server.h"

namespace weft::server {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Status CompleteFromEnvironment(ServerOptions* options) {
  if (options->root.empty()) options->root = Variable("WEFT_FILE_ROOT");
  if (options->cost_file.empty()) options->cost_file = Variable("WEFT_COST_FILE");
  if (options->transport.empty()) options->transport = Variable("WEFT_TRANSPORT");
  if (options->lease_folder.empty()) options->lease_folder = Variable("WEFT_LEASE_FOLDER");
  options->membership = options->membership || Variable("WEFT_MEMBERSHIP") == "1" ||
                        !Variable("WEFT_ELASTIC").empty();
  // Which algorithm computes decides how sums are rounded: with a rule that is so by shape alone.
  if (Variable("TF_DETERMINISTIC_OPS") == "1")
    options->collective_table.clear();
  else if (options->collective_table.empty())
    options->collective_table = Variable("WEFT_COLLECTIVE_TABLE");
  if (options->take_over.empty()) options->take_over = Variable("WEFT_TAKE_OVER");
  if (options->take_over_from.empty()) options->take_over_from = Variable("WEFT_TAKE_OVER_FROM");
  if (const std::string within = Variable("WEFT_HAND_OVER"); !within.empty()) {
    double seconds = 0;
    if (!absl::SimpleAtod(within, &seconds) || !(seconds >= 0)) {
      return InvalidArgument("WEFT_HAND_OVER is '", within,
                             "', expected the seconds that a server waits for the process that "
                             "takes its task over");
    }
    options->hand_over_within = absl::Seconds(seconds);
  }
  if (options->distribution.empty()) options->distribution = Variable("WEFT_DISTRIBUTION");
  const std::string insecure = Variable("WEFT_INSECURE");
  options->insecure = options->insecure || (!insecure.empty() && insecure != "0");
  if (options->identity.has_value() || options->insecure) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(options->identity, JobIdentityFromEnvironment());
  return absl::OkStatus();
}

}  // namespace weft::server
