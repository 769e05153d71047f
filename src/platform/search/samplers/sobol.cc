// SPDX-License-Identifier: Apache-2.0
// Quasi-random search: points of Sobol's sequence fill the space evenly. Direction numbers of Joe
// and Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008; each
// dimension is shifted by the seed (Cranley and Patterson, 1976). Dimensions beyond the table are
// random.
#include <array>
#include <cstdint>

#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr int kBits = 32;

// A primitive polynomial: degree, inner coefficients, first direction numbers.
struct Polynomial {
  int degree;
  uint32_t inner;
  std::array<uint32_t, 6> first;
};
constexpr Polynomial kPolynomials[] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
};
constexpr size_t kDimensions = 1 + std::size(kPolynomials);

// Coordinate `dimension` of point `index`.
double SobolNumber(size_t dimension, uint32_t index) {
  uint32_t directions[kBits];
  if (dimension == 0) {
    for (int i = 0; i < kBits; ++i) directions[i] = uint32_t{1} << (kBits - 1 - i);
  } else {
    const Polynomial& p = kPolynomials[dimension - 1];
    for (int i = 0; i < kBits; ++i) {
      if (i < p.degree) {
        directions[i] = p.first[static_cast<size_t>(i)] << (kBits - 1 - i);
        continue;
      }
      directions[i] = directions[i - p.degree] ^ directions[i - p.degree] >> p.degree;
      for (int k = 1; k < p.degree; ++k) {
        if (p.inner >> (p.degree - 1 - k) & 1) directions[i] ^= directions[i - k];
      }
    }
  }
  uint32_t sum = 0;
  for (int i = 0; i < kBits; ++i) {
    if (index >> i & 1) sum ^= directions[i];
  }
  return sum * 0x1p-32;
}

class Sobol final : public Sampler {
 public:
  Sobol(const SearchSpace& space, uint64_t seed) : space_(space), seed_(seed) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint>,
                              absl::Span<const int>) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    std::vector<double> position(space_.parameters.size());
    for (size_t i = 0; i < position.size(); ++i) {
      const double rest = random.Uniform();
      if (i >= kDimensions) {
        position[i] = rest;
        continue;
      }
      const double shifted = SobolNumber(i, static_cast<uint32_t>(number)) +
                             RandomNumbers(seed_ ^ 0x50b01u, i).Uniform();
      position[i] = shifted < 1 ? shifted : shifted - 1;
    }
    return position;
  }

 private:
  const SearchSpace& space_;
  const uint64_t seed_;
};

}  // namespace

MadeSampler MakeSobol(const SearchSpace& space, const SamplerOptions& options) {
  return std::make_unique<Sobol>(space, options.seed);
}

}  // namespace weft::platform
