// SPDX-License-Identifier: Apache-2.0
// Random search: every point as likely as any other.
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

class Random final : public Sampler {
 public:
  Random(const SearchSpace& space, uint64_t seed) : space_(space), seed_(seed) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint>,
                              absl::Span<const int>) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    std::vector<double> position(space_.parameters.size());
    for (double& p : position) p = random.Uniform();
    return position;
  }

 private:
  const SearchSpace& space_;
  const uint64_t seed_;
};

}  // namespace

MadeSampler MakeRandom(const SearchSpace& space, const SamplerOptions& options) {
  return std::make_unique<Random>(space, options.seed);
}

}  // namespace weft::platform
