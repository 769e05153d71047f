// SPDX-License-Identifier: Apache-2.0
// Hyperband whose configurations come from a model of the highest rung that has seen enough.
// Falkner, Klein and Hutter, "BOHB: robust and efficient hyperparameter optimization at scale",
// 2018.
#include "platform/search/halving_schedule.h"
#include "platform/search/random_numbers.h"

namespace weft::platform {
namespace {

constexpr double kByChance = 1.0 / 3;  // of the configurations, so that no model leads astray

class Bohb final : public HalvingSchedule {
 public:
  Bohb(Budget budget, std::unique_ptr<Sampler> model, std::unique_ptr<Sampler> chance,
       uint64_t seed, size_t parameters)
      : HalvingSchedule(std::move(budget), std::move(model)),
        chance_(std::move(chance)),
        seed_(seed),
        enough_(parameters + 2) {}

 private:
  StatusOr<NextPoint> Fresh(int64_t number, absl::Span<const TrialPoint> trials,
                            absl::Span<const int> finished) override {
    RandomNumbers random(seed_ ^ 0xb0b0u, static_cast<uint64_t>(number));
    if (random.Uniform() < kByChance) return chance_->Suggest(number, trials, finished);
    for (size_t rung = budget_.rungs.size(); rung-- > 0;) {
      std::vector<TrialPoint> seen;
      std::vector<int> ended;
      for (const int i : finished) {
        const TrialPoint& trial = trials[static_cast<size_t>(i)];
        if (budget_.RungOf(trial) != rung) continue;
        ended.push_back(static_cast<int>(seen.size()));
        seen.push_back(trial);
      }
      if (ended.size() < enough_) continue;
      for (const TrialPoint& trial : trials) {
        if (trial.is_running()) seen.push_back(trial);
      }
      return fresh_->Suggest(number, seen, ended);
    }
    return chance_->Suggest(number, trials, finished);
  }

  const std::unique_ptr<Sampler> chance_;
  const uint64_t seed_;
  const size_t enough_;
};

}  // namespace

MadeSampler MakeBohb(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Budget budget, ReadBudget(space, options));
  SamplerOptions early = options;
  early.settings.emplace("n_startup_trials", absl::StrCat(space.parameters.size() + 2));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> model, MakeTpe(space, early));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> chance, MakeRandom(space, options));
  return std::make_unique<Bohb>(std::move(budget), std::move(model), std::move(chance),
                                options.seed, space.parameters.size());
}

}  // namespace weft::platform
