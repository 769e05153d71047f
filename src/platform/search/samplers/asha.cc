// SPDX-License-Identifier: Apache-2.0
// Successive halving without waiting: whoever is among the best of its rung so far goes on with
// more. Li et al., "A system for massively parallel hyperparameter tuning", 2020.
#include <set>

#include "platform/search/budget.h"

namespace weft::platform {
namespace {

class Asha final : public Sampler {
 public:
  Asha(Budget budget, std::unique_ptr<Sampler> fresh)
      : budget_(std::move(budget)), fresh_(std::move(fresh)) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    std::vector<std::vector<int>> rungs(budget_.rungs.size());
    std::set<int64_t> promoted;
    for (const TrialPoint& trial : trials) promoted.insert(trial.parent);
    for (const int i : finished) {
      rungs[budget_.RungOf(trials[static_cast<size_t>(i)])].push_back(i);
    }
    for (size_t level = rungs.size() - 1; level-- > 0;) {
      const std::vector<int> best = ByLoss(trials, rungs[level]);
      const auto good = static_cast<size_t>(static_cast<double>(best.size()) / budget_.eta + 1e-9);
      for (size_t i = 0; i < good; ++i) {
        if (promoted.count(best[i]) > 0) continue;
        std::vector<double> position = trials[static_cast<size_t>(best[i])].position;
        position[budget_.parameter] = budget_.rungs[level + 1];
        return NextPoint(std::move(position), best[i]);
      }
    }
    WEFT_ASSIGN_OR_RETURN(NextPoint next, fresh_->Suggest(number, trials, finished));
    next.position[budget_.parameter] = budget_.rungs.front();
    return next;
  }

 private:
  const Budget budget_;
  const std::unique_ptr<Sampler> fresh_;
};

}  // namespace

MadeSampler MakeAsha(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Budget budget, ReadBudget(space, options));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> fresh, MakeRandom(space, options));
  return std::make_unique<Asha>(std::move(budget), std::move(fresh));
}

}  // namespace weft::platform
