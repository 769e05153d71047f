// SPDX-License-Identifier: Apache-2.0
// Hyperband's brackets: many configurations with little, the best of them with more and more. Li,
// Jamieson, DeSalvo, Rostamizadeh and Talwalkar, "Hyperband", 2018. A slot that would wait for a
// rung begins the next bracket instead.
#pragma once

#include <memory>
#include <vector>

#include "platform/search/budget.h"
#include "platform/search/sampler.h"

namespace weft::platform {

// Where fresh configurations come from is the caller's: chance in Hyperband, a model in BOHB.
class HalvingSchedule : public Sampler {
 public:
  HalvingSchedule(Budget budget, std::unique_ptr<Sampler> fresh)
      : budget_(std::move(budget)), fresh_(std::move(fresh)) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override;

 protected:
  // A configuration for the first rung of a bracket; its budget is set by the caller.
  virtual StatusOr<NextPoint> Fresh(int64_t number, absl::Span<const TrialPoint> trials,
                                    absl::Span<const int> finished) {
    return fresh_->Suggest(number, trials, finished);
  }

  const Budget budget_;
  const std::unique_ptr<Sampler> fresh_;

 private:
  // How many configurations bracket `n` has at its first rung, and which rung that is.
  struct Bracket {
    size_t rung = 0;
    size_t size = 0;
  };
  Bracket BracketOf(size_t n) const;
};

}  // namespace weft::platform
