// SPDX-License-Identifier: Apache-2.0
// An algorithm of a search: which point to try next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "platform/search/space.h"

namespace weft::platform {

// What is known of a trial. Positions lie in [0, 1], one for each parameter; of one that its
// condition rules out it is 0.5.
struct TrialPoint {
  std::vector<double> position;
  bool is_finished = false;
  bool has_failed = false;
  // Of a finished one; less is better. One that breaks a constraint is worse than all that do not.
  double loss = 0;
  std::vector<double> losses = {};  // one for each objective; the first one's alone is `loss`
  double violation = 0;             // of constraints; 0: it keeps them
  int64_t number = 0;
  int64_t parent = -1;  // the trial whose checkpoint it goes on from

  bool is_running() const { return !is_finished && !has_failed; }
};

// Where to go next.
struct NextPoint {
  NextPoint(std::vector<double> where) : position(std::move(where)) {}  // NOLINT
  NextPoint(std::vector<double> where, int64_t from) : position(std::move(where)), parent(from) {}
  std::vector<double> position;
  int64_t parent = -1;
};

// Its suggestions depend on the space, the options and what it is told alone: a search that was
// stopped goes on as if it had not been.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // A position for trial `number`. `trials` are the earlier ones by their numbers, and `finished`
  // the finished ones among them in the order of their ends.
  // OutOfRange when there is nothing left to try; Unavailable until more trials have ended.
  virtual StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                                      absl::Span<const int> finished) = 0;
};

struct SamplerOptions {
  uint64_t seed = 0;
  // By the algorithm's own names, which are Katib's where it has them.
  std::map<std::string, std::string> settings = {};
  // Where it is set, the names of all settings that the algorithm asks for.
  std::set<std::string>* asked = nullptr;

  // InvalidArgument that names the setting when it is no number, or lies outside of [low, high].
  StatusOr<double> Number(const std::string& name, double missing, double low, double high) const;
  StatusOr<std::string> Text(const std::string& name, const std::string& missing,
                             const std::vector<std::string>& allowed) const;
};

// The algorithms, one file each in samplers/. The space must outlive the sampler; InvalidArgument
// names a setting that is missing or makes no sense.
using MadeSampler = StatusOr<std::unique_ptr<Sampler>>;
MadeSampler MakeAnnealing(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeAsha(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeBohb(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeCmaEs(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeGaussianProcess(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeGrid(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeHyperband(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeNsga2(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakePopulation(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeRandom(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeSobol(const SearchSpace& space, const SamplerOptions& options);
MadeSampler MakeTpe(const SearchSpace& space, const SamplerOptions& options);

// Names of all algorithms, and one of them, also by Katib's name for it; NotFound with the names
// there are.
std::vector<std::string> SamplerNames();
MadeSampler MakeSampler(absl::string_view name, const SearchSpace& space,
                        const SamplerOptions& options);
bool IsSampler(absl::string_view name);

}  // namespace weft::platform
