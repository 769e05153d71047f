// SPDX-License-Identifier: Apache-2.0
// Classes drawn as often as they are known to occur: by given numbers, or by those seen so far.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/nn/candidate_kernel.h"
#include "weft/ops/random/distribution_kernel.h"

namespace weft::ops::nn::unigram_sampler {
namespace {

// One of [0, n), each as likely: words that would favour small ones are left out.
uint32_t UnbiasedBelow(PhiloxWords& words, uint32_t n) {
  if ((n & (n - 1)) == 0) return words.Next() & (n - 1);
  const uint32_t unfair = std::numeric_limits<uint32_t>::max() % n + 1;
  uint32_t word = 0;
  do {
    word = words.Next();
  } while (word < unfair);
  return word % n;
}

// How often each class was seen, and one at first. Sums of ranges (Fenwick, 1994) find the class
// that a number of the total falls on.
class SeenCounts {
 public:
  explicit SeenCounts(int64_t classes) : sums_(static_cast<size_t>(classes) + 1), total_(classes) {
    for (int64_t i = 1; i <= classes; ++i) sums_[static_cast<size_t>(i)] = i & -i;
  }
  int64_t Draw(PhiloxWords& words) const {
    int64_t left = UnbiasedBelow(words, static_cast<uint32_t>(total_));
    size_t step = 1, at = 0;
    while (step * 2 < sums_.size()) step *= 2;
    for (; step > 0; step /= 2) {
      if (at + step < sums_.size() && sums_[at + step] <= left) {
        at += step;
        left -= sums_[at];
      }
    }
    return static_cast<int64_t>(at);
  }
  float Probability(int64_t value) const {
    return static_cast<float>(Below(value + 1) - Below(value)) / static_cast<float>(total_);
  }
  void Add(absl::Span<const int64_t> values) {
    for (const int64_t value : values) {
      if (total_ >= std::numeric_limits<int32_t>::max()) return;
      ++total_;
      for (size_t i = static_cast<size_t>(value) + 1; i < sums_.size(); i += i & -i) ++sums_[i];
    }
  }

 private:
  int64_t Below(int64_t value) const {
    int64_t sum = 0;
    for (auto i = static_cast<size_t>(value); i > 0; i &= i - 1) sum += sums_[i];
    return sum;
  }
  std::vector<int64_t> sums_;
  int64_t total_;
};

class LearnedKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const CandidateOptions options, ReadCandidateOptions(c));
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (options.range >= kMost) {
      return InvalidArgument("range_max must be less than ", kMost, " for unigram samplers, got ",
                             options.range);
    }
    WEFT_RETURN_IF_ERROR(CheckRoomFor(options.range, sizeof(int64_t), "classes"));
    return std::make_unique<LearnedKernel>(c, options);
  }
  LearnedKernel(KernelConstruction& c, const CandidateOptions& options)
      : generator_(c), options_(options), counts_(options.range) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckTrueClasses(c.input(0), options_.num_true, options_.range));
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(SampleCandidates(c, options_, generator_, counts_));
    counts_.Add(c.input(0).span<int64_t>());
    return absl::OkStatus();
  }

 private:
  GuardedPhilox generator_;
  const CandidateOptions options_;
  absl::Mutex mutex_;
  SeenCounts counts_ ABSL_GUARDED_BY(mutex_);
};

// Given weights: each class, and the one that shares its place, so that one word finds either
// (Walker's aliases).
class Weights {
 public:
  explicit Weights(std::vector<float> weights) : weights_(std::move(weights)) {
    for (const float weight : weights_) total_ += weight;
    const size_t n = weights_.size();
    double sum = 0;
    for (const float weight : weights_) sum += weight;
    std::vector<double> share(n);
    std::vector<size_t> high, low;
    for (size_t i = 0; i < n; ++i) {
      share[i] = static_cast<double>(weights_[i] * static_cast<float>(n)) / sum;
      (share[i] < 1 ? low : high).push_back(i);
      places_.push_back({0, i});
    }
    while (!high.empty() && !low.empty()) {
      const size_t l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      places_[l].other = h;
      share[h] -= 1 - share[l];
      (share[h] < 1 ? low : high).push_back(h);
    }
    for (size_t i = 0; i < n; ++i) places_[i].own = static_cast<float>(share[i]);
    // What rounding left over is whole.
    for (const std::vector<size_t>* rest : {&high, &low}) {
      for (const size_t i : *rest) places_[i] = {1, i};
    }
  }
  int64_t Draw(PhiloxWords& words) const {
    const uint32_t drawn = words.Next();
    const auto part = UniformFrom<float>(&drawn);
    const uint32_t word = words.Next();
    const size_t n = places_.size();
    const size_t at = (n & (n - 1)) == 0 ? word & (n - 1) : word % n;
    return static_cast<int64_t>(part < places_[at].own ? at : places_[at].other);
  }
  float Probability(int64_t value) const { return weights_[static_cast<size_t>(value)] / total_; }
  int64_t count() const { return static_cast<int64_t>(weights_.size()); }

 private:
  struct Place {
    float own;  // how much of the place is the class's own
    size_t other;
  };
  std::vector<float> weights_;
  std::vector<Place> places_;
  float total_ = 0;
};

struct FixedOptions {
  std::string file;
  std::vector<double> unigrams;
  double distortion = 1;
  int64_t num_reserved = 0;
  int64_t num_shards = 1;
  int64_t shard = 0;
};

class FixedKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const CandidateOptions options, ReadCandidateOptions(c));
    FixedOptions fixed;
    WEFT_ASSIGN_OR_RETURN(fixed.file, c.Attr<std::string>("vocab_file"));
    WEFT_ASSIGN_OR_RETURN(const auto unigrams, c.Attr<std::vector<float>>("unigrams"));
    fixed.unigrams.assign(unigrams.begin(), unigrams.end());
    WEFT_ASSIGN_OR_RETURN(const float distortion, c.Attr<float>("distortion"));
    fixed.distortion = distortion;
    WEFT_ASSIGN_OR_RETURN(fixed.num_reserved, c.Attr<int64_t>("num_reserved_ids"));
    WEFT_ASSIGN_OR_RETURN(fixed.num_shards, c.Attr<int64_t>("num_shards"));
    WEFT_ASSIGN_OR_RETURN(fixed.shard, c.Attr<int64_t>("shard"));
    if (fixed.file.empty() && fixed.unigrams.empty()) {
      return InvalidArgument("Must provide either vocab_file or unigrams.");
    }
    if (!fixed.file.empty() && !fixed.unigrams.empty()) {
      return InvalidArgument("Must only provide one of vocab_file and unigrams.");
    }
    if (fixed.num_reserved > options.range * fixed.num_shards) {
      return InvalidArgument("range_max is ", options.range, ", but ", fixed.num_reserved,
                             " ids are reserved");
    }
    auto kernel = std::make_unique<FixedKernel>(c, options, std::move(fixed));
    if (kernel->fixed_.file.empty()) WEFT_RETURN_IF_ERROR(kernel->Prepare(nullptr));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  FixedKernel(KernelConstruction& c, const CandidateOptions& options, FixedOptions fixed)
      : fixed_(std::move(fixed)), generator_(c), options_(options) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckTrueClasses(c.input(0), options_.num_true, options_.range));
    WEFT_RETURN_IF_ERROR(Prepare(c.environment().files));
    const Weights* weights = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      weights = weights_.get();  // never changes once it is there
    }
    return SampleCandidates(c, options_, generator_, *weights);
  }

 private:
  // Reads the weights the first time.
  Status Prepare(FileSystem* files) {
    absl::MutexLock lock(&mutex_);
    if (weights_ != nullptr) return absl::OkStatus();
    std::vector<double> given = fixed_.unigrams;
    if (!fixed_.file.empty()) {
      if (files == nullptr) return FailedPrecondition("This step has no files");
      WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(*files, fixed_.file));
      for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
        const std::vector<absl::string_view> columns = absl::StrSplit(line, ',');
        float weight = 0;
        if (!absl::SimpleAtof(columns.back(), &weight)) {
          return InvalidArgument("Wrong vocabulary format at line: ", line);
        }
        given.push_back(weight);
      }
    }
    std::vector<float> weights;
    int64_t id = 0;
    for (; id < fixed_.num_reserved; ++id) {
      if (id % fixed_.num_shards == fixed_.shard) weights.push_back(0);
    }
    id = static_cast<int64_t>(weights.size());
    for (const double one : given) {
      if (id++ % fixed_.num_shards != fixed_.shard) continue;
      weights.push_back(std::pow(static_cast<float>(one), static_cast<float>(fixed_.distortion)));
    }
    if (static_cast<int64_t>(weights.size()) != options_.range) {
      return InvalidArgument("range is ", options_.range, " must be equal to weights size  ",
                             weights.size());
    }
    const auto drawn = std::count_if(weights.begin(), weights.end(), [](float w) { return w > 0; });
    if (drawn < (options_.unique ? options_.num_sampled : 1)) {
      return InvalidArgument("Only ", drawn, " classes have weights, fewer than the ",
                             options_.num_sampled, " that shall be drawn");
    }
    weights_ = std::make_unique<Weights>(std::move(weights));
    return absl::OkStatus();
  }

  const FixedOptions fixed_;
  GuardedPhilox generator_;
  const CandidateOptions options_;
  absl::Mutex mutex_;
  std::unique_ptr<const Weights> weights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void Register(Catalogue& catalogue) {
  const std::string learned =
      "Draws num_sampled classes below range_max, each as likely as it was seen among the true "
      "classes before; different ones if `unique`.";
  for (const char* name :
       {"LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"}) {
    OpSpec spec = CandidateSampler(name, learned, true);
    catalogue.Add(std::move(spec.Kernel(MakeKernel<LearnedKernel>())));
  }
  OpSpec fixed = CandidateSampler(
      "FixedUnigramCandidateSampler",
      "Draws num_sampled classes below range_max, each as likely as unigrams, or the last columns "
      "of vocab_file, say; different ones if `unique`.\nWeights are taken to the power of "
      "distortion; reserved ids have none; of several shards each has every num_shards-th class.",
      true);
  fixed.Attr("vocab_file: string = ''")
      .Attr("distortion: float = 1.0")
      .Attr("num_reserved_ids: int = 0")
      .Attr("num_shards: int >= 1 = 1")
      .Attr("shard: int >= 0 = 0")
      .Attr("unigrams: list(float) = []");
  catalogue.Add(std::move(fixed.Kernel(MakeKernel<FixedKernel>())));
}

}  // namespace weft::ops::nn::unigram_sampler
