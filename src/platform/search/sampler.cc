// SPDX-License-Identifier: Apache-2.0
#include "platform/search/sampler.h"

#include "absl/strings/str_join.h"

namespace weft::platform {
namespace {

struct NamedSampler {
  const char* name;
  std::unique_ptr<Sampler> (*make)(const SearchSpace& space, uint64_t seed);
};
constexpr NamedSampler kSamplers[] = {{"annealing", MakeAnnealing},
                                      {"bayesian", MakeGaussianProcess},
                                      {"cmaes", MakeCmaEs},
                                      {"grid", MakeGrid},
                                      {"random", MakeRandom},
                                      {"sobol", MakeSobol},
                                      {"tpe", MakeTpe}};

}  // namespace

std::vector<std::string> SamplerNames() {
  std::vector<std::string> names;
  for (const NamedSampler& sampler : kSamplers) names.emplace_back(sampler.name);
  return names;
}

StatusOr<std::unique_ptr<Sampler>> MakeSampler(absl::string_view name, const SearchSpace& space,
                                               uint64_t seed) {
  for (const NamedSampler& sampler : kSamplers) {
    if (name == sampler.name) return sampler.make(space, seed);
  }
  return NotFound("there is no search algorithm '", name,
                  "': ", absl::StrJoin(SamplerNames(), ", "));
}

}  // namespace weft::platform
