// SPDX-License-Identifier: Apache-2.0
// Simulated annealing: steps from where the search stands, which moves to what is better and, the
// less the longer it lasts, to what is worse. Kirkpatrick, Gelatt and Vecchi, "Optimization by
// simulated annealing", 1983.
#include <algorithm>
#include <cmath>

#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr size_t kStepsFrom = 8;      // random points before the first step
constexpr double kFirstWidth = 0.25;  // of a step, as a part of a range
constexpr double kLastWidth = 0.01;
constexpr double kHalfLife = 40;  // trials in which width and temperature halve

class Annealing final : public Sampler {
 public:
  Annealing(const SearchSpace& space, uint64_t seed) : space_(space), seed_(seed) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    std::vector<double> position(space_.parameters.size());
    if (finished.size() < kStepsFrom) {
      for (double& p : position) p = random.Uniform();
      return position;
    }
    position = trials[static_cast<size_t>(Walk(trials, finished))].position;
    const double cooled = std::exp2(-static_cast<double>(finished.size() - kStepsFrom) / kHalfLife);
    const double width = std::max(kLastWidth, kFirstWidth * cooled);
    // At least one parameter moves.
    const size_t always = static_cast<size_t>(random.Below(static_cast<int64_t>(position.size())));
    for (size_t i = 0; i < position.size(); ++i) {
      const bool moves = i == always || random.Uniform() < 0.5;
      const double to = space_.parameters[i].kind == SearchParameter::Kind::kChoice
                            ? random.Uniform()
                            : Reflect(position[i] + width * random.Normal());
      if (moves) position[i] = to;
    }
    return position;
  }

 private:
  // Where the search stands after all finished trials, as an index of a trial.
  int Walk(absl::Span<const TrialPoint> trials, absl::Span<const int> finished) const {
    int at = finished[0];
    double low = trials[at].loss, high = low;
    for (size_t i = 1; i < finished.size(); ++i) {
      const double loss = trials[finished[i]].loss;
      low = std::min(low, loss);
      high = std::max(high, loss);
      const double cooled = std::exp2(-static_cast<double>(i) / kHalfLife);
      const double temperature = 0.1 * cooled * (high - low) + 1e-300;
      // Decided by its own numbers, so that a search that goes on stands where it stood.
      RandomNumbers random(seed_ ^ 0xacce97u, i);
      const double worse = loss - trials[at].loss;
      if (worse <= 0 || random.Uniform() < std::exp(-worse / temperature)) at = finished[i];
    }
    return at;
  }

  const SearchSpace& space_;
  const uint64_t seed_;
};

}  // namespace

MadeSampler MakeAnnealing(const SearchSpace& space, const SamplerOptions& options) {
  return std::make_unique<Annealing>(space, options.seed);
}

}  // namespace weft::platform
