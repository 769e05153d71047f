// SPDX-License-Identifier: Apache-2.0
// Several objectives at once: parents are those that no other one beats, spread along the front.
// Deb, Pratap, Agarwal and Meyarivan, "A fast and elitist multiobjective genetic algorithm:
// NSGA-II", 2002; what breaks a constraint loses against what does not.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kParents = 24;
constexpr double kCrossed = 0.9;    // of the children
constexpr double kCrossIndex = 15;  // larger: nearer to the parents
constexpr double kMutationIndex = 20;

bool Dominates(const TrialPoint& a, const TrialPoint& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  bool is_better = false;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    if (a.losses[i] > b.losses[i]) return false;
    is_better = is_better || a.losses[i] < b.losses[i];
  }
  return is_better;
}

class Nsga2 final : public Sampler {
 public:
  Nsga2(const SearchSpace& space, uint64_t seed, size_t parents)
      : space_(space), seed_(seed), size_(parents) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    std::vector<double> child(space_.parameters.size());
    if (finished.size() < size_) {
      for (double& p : child) p = random.Uniform();
      return child;
    }
    const std::vector<int> parents = Choose(trials, finished);
    // They stand in their order, so that the lower index wins a tournament.
    const auto pick = [&] {
      const auto count = static_cast<int64_t>(parents.size());
      return trials[static_cast<size_t>(
          parents[static_cast<size_t>(std::min(random.Below(count), random.Below(count)))])];
    };
    const TrialPoint mother = pick(), father = pick();
    const bool is_crossed = random.Uniform() < kCrossed;
    const double mutated = 1.0 / static_cast<double>(child.size());
    for (size_t i = 0; i < child.size(); ++i) {
      const bool is_choice = space_.parameters[i].kind == SearchParameter::Kind::kChoice;
      child[i] = mother.position[i];
      if (is_crossed) child[i] = Cross(is_choice, child[i], father.position[i], random);
      if (random.Uniform() < mutated)
        child[i] = is_choice ? random.Uniform() : Mutate(child[i], random);
    }
    return child;
  }

 private:
  static double Cross(bool is_choice, double a, double b, RandomNumbers& random) {
    const double u = random.Uniform();
    if (is_choice) return u < 0.5 ? a : b;
    const double spread = u < 0.5 ? std::pow(2 * u, 1 / (kCrossIndex + 1))
                                  : std::pow(1 / (2 * (1 - u)), 1 / (kCrossIndex + 1));
    const double sign = random.Uniform() < 0.5 ? 1 : -1;
    return std::clamp(0.5 * (a + b) + sign * 0.5 * spread * (a - b), 0.0, 1.0);
  }

  static double Mutate(double x, RandomNumbers& random) {
    const double u = random.Uniform();
    const double move = u < 0.5 ? std::pow(2 * u, 1 / (kMutationIndex + 1)) - 1
                                : 1 - std::pow(2 * (1 - u), 1 / (kMutationIndex + 1));
    return std::clamp(x + move, 0.0, 1.0);
  }

  // The best of all that has ended, front by front, the less crowded first.
  std::vector<int> Choose(absl::Span<const TrialPoint> trials,
                          absl::Span<const int> finished) const {
    std::vector<int> left(finished.begin(), finished.end());
    // Only the latest can matter of very many; their parents are among them.
    constexpr size_t kMostSeen = 400;
    if (left.size() > kMostSeen) left.erase(left.begin(), left.end() - kMostSeen);
    std::vector<int> chosen;
    while (chosen.size() < size_ && !left.empty()) {
      std::vector<int> front, rest;
      for (const int a : left) {
        const bool is_beaten = std::any_of(left.begin(), left.end(), [&](int b) {
          return Dominates(trials[static_cast<size_t>(b)], trials[static_cast<size_t>(a)]);
        });
        (is_beaten ? rest : front).push_back(a);
      }
      SortBySpace(trials, &front);
      const size_t more = std::min(front.size(), size_ - chosen.size());
      chosen.insert(chosen.end(), front.begin(), front.begin() + static_cast<int64_t>(more));
      left = std::move(rest);
    }
    return chosen;
  }

  // Those with the most space between their neighbours first.
  static void SortBySpace(absl::Span<const TrialPoint> trials, std::vector<int>* front) {
    std::vector<double> space(front->size(), 0);
    std::vector<size_t> order(front->size());
    const size_t objectives = trials[static_cast<size_t>(front->front())].losses.size();
    for (size_t m = 0; m < objectives; ++m) {
      const auto loss = [&](size_t i) {
        return trials[static_cast<size_t>((*front)[i])].losses[m];
      };
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return loss(a) < loss(b); });
      const double range = loss(order.back()) - loss(order.front());
      space[order.front()] = space[order.back()] = HUGE_VAL;
      for (size_t i = 1; i + 1 < order.size() && range > 0; ++i)
        space[order[i]] += (loss(order[i + 1]) - loss(order[i - 1])) / range;
    }
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return space[a] > space[b]; });
    std::vector<int> sorted;
    for (const size_t i : order) sorted.push_back((*front)[i]);
    *front = std::move(sorted);
  }

  const SearchSpace& space_;
  const uint64_t seed_;
  const size_t size_;
};

}  // namespace

MadeSampler MakeNsga2(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const double parents, options.Number("population_size", kParents, 2, 1000));
  return std::make_unique<Nsga2>(space, options.seed, static_cast<size_t>(parents));
}

}  // namespace weft::platform
