// SPDX-License-Identifier: Apache-2.0
// Every combination once. A range of doubles without a step is taken at ten places.
#include <algorithm>

#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr int64_t kPlaces = 10;

class Grid final : public Sampler {
 public:
  explicit Grid(const SearchSpace& space) : space_(space) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint>,
                              absl::Span<const int>) override {
    std::vector<double> position(space_.parameters.size());
    int64_t rest = number;
    // The last parameter changes fastest.
    for (size_t i = position.size(); i-- > 0;) {
      const SearchParameter& p = space_.parameters[i];
      const int64_t places = p.size() == 0 ? kPlaces : p.size();
      const auto at = static_cast<double>(rest % places);
      rest /= places;
      const auto last = static_cast<double>(std::max<int64_t>(1, places - 1));
      if (p.size() == 0) {
        position[i] = at / last;
      } else if (p.kind == SearchParameter::Kind::kChoice) {
        position[i] = p.ToUnit(at);
      } else if (p.logarithmic) {
        position[i] = p.ToUnit(p.low + at * (p.step == 0 ? 1 : p.step));
      } else {
        position[i] = (at + 0.5) / static_cast<double>(places);
      }
    }
    if (rest > 0) return absl::OutOfRangeError("every combination of the grid was tried");
    return position;
  }

 private:
  const SearchSpace& space_;
};

}  // namespace

MadeSampler MakeGrid(const SearchSpace& space, const SamplerOptions& /*options*/) {
  return std::make_unique<Grid>(space);
}

}  // namespace weft::platform
