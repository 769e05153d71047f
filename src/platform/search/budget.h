// SPDX-License-Identifier: Apache-2.0
// The parameter that says how long a trial runs, for algorithms that give more only to what is
// promising.
#pragma once

#include <vector>

#include "platform/search/sampler.h"
#include "platform/search/space.h"

namespace weft::platform {

struct Budget {
  size_t parameter = 0;       // of the space
  double eta = 3;             // a rung gives so many times more than the one below
  std::vector<double> rungs;  // positions of the parameter, least first; at least one

  // The rung that a trial ran at.
  size_t RungOf(const TrialPoint& trial) const;
};

// From Katib's settings: resource_name names the parameter, r_l is the most that it gives, eta
// divides that; r_min, weft's own, is the least. InvalidArgument where there is no such parameter.
StatusOr<Budget> ReadBudget(const SearchSpace& space, const SamplerOptions& options);

// The name of the parameter and the range that the settings need it to have; the name is empty
// where they speak of none.
struct BudgetRange {
  std::string name;
  double low = 0, high = 0;
};
BudgetRange BudgetRangeOf(const SamplerOptions& options);

// Finished trials of `candidates` (indices of `trials`), the best first.
std::vector<int> ByLoss(absl::Span<const TrialPoint> trials, std::vector<int> candidates);

}  // namespace weft::platform
