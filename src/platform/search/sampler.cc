// SPDX-License-Identifier: Apache-2.0
#include "platform/search/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace weft::platform {
namespace {

struct NamedSampler {
  const char* name;
  MadeSampler (*make)(const SearchSpace& space, const SamplerOptions& options);
  const char* also = nullptr;  // what Katib calls it
};
constexpr NamedSampler kSamplers[] = {{"annealing", MakeAnnealing},
                                      {"asha", MakeAsha},
                                      {"bayesian", MakeGaussianProcess, "bayesianoptimization"},
                                      {"bohb", MakeBohb},
                                      {"cmaes", MakeCmaEs},
                                      {"grid", MakeGrid},
                                      {"hyperband", MakeHyperband},
                                      {"nsga2", MakeNsga2},
                                      {"pbt", MakePopulation},
                                      {"random", MakeRandom},
                                      {"sobol", MakeSobol},
                                      {"tpe", MakeTpe, "multivariate-tpe"}};

const NamedSampler* FindSampler(absl::string_view name) {
  for (const NamedSampler& sampler : kSamplers) {
    if (name == sampler.name || (sampler.also != nullptr && name == sampler.also)) return &sampler;
  }
  return nullptr;
}

}  // namespace

StatusOr<double> SamplerOptions::Number(const std::string& name, double missing, double low,
                                        double high) const {
  if (asked != nullptr) asked->insert(name);
  const auto found = settings.find(name);
  if (found == settings.end() || found->second.empty() || found->second == "None") return missing;
  double value = 0;
  if (!absl::SimpleAtod(found->second, &value) || !(value >= low && value <= high)) {
    return InvalidArgument("the setting ", name, " of the algorithm is '", found->second,
                           "': a number from ", low, " to ", high, " is allowed");
  }
  return value;
}

StatusOr<std::string> SamplerOptions::Text(const std::string& name, const std::string& missing,
                                           const std::vector<std::string>& allowed) const {
  if (asked != nullptr) asked->insert(name);
  const auto found = settings.find(name);
  if (found == settings.end() || found->second.empty()) return missing;
  if (absl::c_linear_search(allowed, found->second)) return found->second;
  return InvalidArgument("the setting ", name, " of the algorithm is '", found->second,
                         "': allowed are ", absl::StrJoin(allowed, ", "));
}

std::vector<std::string> SamplerNames() {
  std::vector<std::string> names;
  for (const NamedSampler& sampler : kSamplers) names.emplace_back(sampler.name);
  return names;
}

bool IsSampler(absl::string_view name) { return FindSampler(name) != nullptr; }

MadeSampler MakeSampler(absl::string_view name, const SearchSpace& space,
                        const SamplerOptions& options) {
  const NamedSampler* const sampler = FindSampler(name);
  if (sampler != nullptr) return sampler->make(space, options);
  return NotFound("there is no search algorithm '", name,
                  "': ", absl::StrJoin(SamplerNames(), ", "));
}

}  // namespace weft::platform
