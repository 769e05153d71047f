// SPDX-License-Identifier: Apache-2.0
// Population-based training: in each generation the worst members go on from the checkpoint of a
// good one, with its parameters a little changed. Jaderberg et al., "Population based training of
// neural networks", 2017. Trial g * n + j is member j of generation g.
#include <algorithm>

#include "platform/search/budget.h"
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kMembers = 16;
constexpr double kExchanged = 0.2;  // of the members, at each end
constexpr double kStretch = 0.2;    // of a value, up or down

class Population final : public Sampler {
 public:
  Population(const SearchSpace& space, uint64_t seed, int64_t members, double exchanged,
             double resampled)
      : space_(space),
        seed_(seed),
        members_(members),
        exchanged_(exchanged),
        resampled_(resampled) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> /*finished*/) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    if (number < members_) return NextPoint(Anywhere(random));
    const int64_t begin = (number / members_ - 1) * members_;
    const TrialPoint& before = trials[static_cast<size_t>(number - members_)];
    if (before.is_running()) {
      return Unavailable("member ", number % members_, " of the population still runs");
    }
    std::vector<int> generation;
    for (int64_t i = begin; i < begin + members_; ++i) generation.push_back(static_cast<int>(i));
    const std::vector<int> best = ByLoss(trials, std::move(generation));
    if (best.empty()) return NextPoint(Anywhere(random));
    const auto exchanged = std::max<size_t>(
        1, static_cast<size_t>(exchanged_ * static_cast<double>(best.size()) + 1e-9));
    const auto at = std::find(best.begin(), best.end(), static_cast<int>(number - members_));
    const bool is_bad = at == best.end() || (best.size() > exchanged &&
                                             at >= best.end() - static_cast<int64_t>(exchanged));
    if (!is_bad) return NextPoint(before.position, before.number);
    const TrialPoint& good = trials[static_cast<size_t>(
        best[static_cast<size_t>(random.Below(static_cast<int64_t>(exchanged)))])];
    return NextPoint(Explore(good.position, random), good.number);
  }

 private:
  std::vector<double> Anywhere(RandomNumbers& random) const {
    std::vector<double> position(space_.parameters.size());
    for (double& p : position) p = random.Uniform();
    return position;
  }

  std::vector<double> Explore(std::vector<double> position, RandomNumbers& random) const {
    for (size_t i = 0; i < position.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      const bool is_new = random.Uniform() < resampled_;
      const double anywhere = random.Uniform();
      const double factor = random.Uniform() < 0.5 ? 1 - kStretch : 1 + kStretch;
      if (is_new) {
        position[i] = anywhere;
      } else if (p.kind != SearchParameter::Kind::kChoice) {
        const double value = p.FromUnit(position[i]);
        double changed = std::clamp(value * factor, p.low, p.high);
        // Of few whole numbers the next one.
        const double step = p.step != 0 ? p.step : p.kind == SearchParameter::Kind::kInt ? 1 : 0;
        if (step > 0 && std::abs(changed - value) < step)
          changed = std::clamp(value + (factor > 1 ? step : -step), p.low, p.high);
        position[i] = p.ToUnit(changed);
      }
    }
    return position;
  }

  const SearchSpace& space_;
  const uint64_t seed_;
  const int64_t members_;
  const double exchanged_;
  const double resampled_;
};

}  // namespace

MadeSampler MakePopulation(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const double members, options.Number("n_population", kMembers, 2, 1e6));
  WEFT_ASSIGN_OR_RETURN(const double exchanged,
                        options.Number("truncation_threshold", kExchanged, 0.001, 0.5));
  WEFT_ASSIGN_OR_RETURN(const double resampled, options.Number("resample_probability", 0, 0, 1));
  return std::make_unique<Population>(space, options.seed, static_cast<int64_t>(members), exchanged,
                                      resampled);
}

}  // namespace weft::platform
