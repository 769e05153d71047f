// SPDX-License-Identifier: Apache-2.0
// An algorithm of a search: which point to try next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "platform/search/space.h"

namespace weft::platform {

// What is known of a trial. Positions lie in [0, 1], one for each parameter.
struct TrialPoint {
  std::vector<double> position;
  bool is_finished = false;
  double loss = 0;  // of a finished one; less is better
};

// Its suggestions depend on the space, the seed and what it is told alone: a search that was
// stopped goes on as if it had not been.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // A position for trial `number`. `trials` are the earlier ones that did not fail, in the order
  // of their numbers, and `finished` the finished ones among them in the order of their ends.
  // OutOfRange when there is nothing left to try.
  virtual StatusOr<std::vector<double>> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                                                absl::Span<const int> finished) = 0;
};

// The algorithms, one file each in samplers/.
std::unique_ptr<Sampler> MakeAnnealing(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeCmaEs(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeGaussianProcess(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeGrid(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeRandom(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeSobol(const SearchSpace& space, uint64_t seed);
std::unique_ptr<Sampler> MakeTpe(const SearchSpace& space, uint64_t seed);

// Names of all algorithms, and one of them; NotFound with the names there are. The space must
// outlive the sampler.
std::vector<std::string> SamplerNames();
StatusOr<std::unique_ptr<Sampler>> MakeSampler(absl::string_view name, const SearchSpace& space,
                                               uint64_t seed);

}  // namespace weft::platform
