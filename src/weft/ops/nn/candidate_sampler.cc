// SPDX-License-Identifier: Apache-2.0
// Classes drawn as negative examples: noise-contrastive estimation and sampled softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "weft/ops/nn/candidate_kernel.h"
#include "weft/ops/random/distribution_kernel.h"

namespace weft::ops::nn::candidate_sampler {
namespace {

// Every class is as likely.
struct Uniform {
  explicit Uniform(int64_t range) : classes(static_cast<uint64_t>(range)) {}
  int64_t Draw(PhiloxWords& words) const {
    const uint64_t low = words.Next();
    const uint64_t word = uint64_t{words.Next()} << 32 | low;
    return static_cast<int64_t>((classes & (classes - 1)) == 0 ? word & (classes - 1)
                                                               : word % classes);
  }
  float Probability(int64_t) const {
    return static_cast<float>(1.0 / static_cast<double>(classes));
  }
  const uint64_t classes;
};

// Nearly Zipf's law: classes are sorted by how often they occur.
struct LogUniform {
  explicit LogUniform(int64_t range)
      : classes(range), log_classes(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(PhiloxWords& words) const {
    const uint32_t drawn[] = {words.Next(), words.Next()};
    // Rounding may take it one too far.
    return (static_cast<int64_t>(std::exp(UniformFrom<double>(drawn) * log_classes)) - 1) % classes;
  }
  float Probability(int64_t value) const {
    const auto v = static_cast<double>(value);
    return static_cast<float>(std::log((v + 2.0) / (v + 1.0)) / log_classes);
  }
  const int64_t classes;
  const double log_classes;
};

template <typename Distribution>
class SampleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const CandidateOptions options, ReadCandidateOptions(c));
    return std::make_unique<SampleKernel>(c, options);
  }
  SampleKernel(KernelConstruction& c, const CandidateOptions& options)
      : generator_(c), options_(options), distribution_(options.range) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckTrueClasses(c.input(0), options_.num_true, options_.range));
    return SampleCandidates(c, options_, generator_, distribution_);
  }

 private:
  GuardedPhilox generator_;
  const CandidateOptions options_;
  const Distribution distribution_;
};

// No choice: every class once.
class AllKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
    WEFT_ASSIGN_OR_RETURN(const int64_t num_sampled, c.Attr<int64_t>("num_sampled"));
    return std::make_unique<AllKernel>(num_true, num_sampled);
  }
  AllKernel(int64_t num_true, int64_t num_sampled)
      : num_true_(num_true), num_sampled_(num_sampled) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckTrueClasses(c.input(0), num_true_, num_sampled_));
    WEFT_ASSIGN_OR_RETURN(Tensor * sampled, c.AllocateOutput(0, Shape{num_sampled_}));
    for (int64_t i = 0; i < num_sampled_; ++i) sampled->data<int64_t>()[i] = i;
    for (int o = 1; o <= 2; ++o) {
      WEFT_ASSIGN_OR_RETURN(Tensor * counts,
                            c.AllocateOutput(o, o == 1 ? c.input(0).shape() : Shape{num_sampled_}));
      std::fill_n(counts->data<float>(), counts->num_elements(), 1.0f);
    }
    return absl::OkStatus();
  }

 private:
  const int64_t num_true_;
  const int64_t num_sampled_;
};

class AccidentalHitsKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
    return std::make_unique<AccidentalHitsKernel>(num_true);
  }
  explicit AccidentalHitsKernel(int64_t num_true) : num_true_(num_true) {}

  Status Compute(KernelContext& c) override {
    const Tensor &truth = c.input(0), &sampled = c.input(1);
    if (truth.rank() != 2 || truth.dim(1) != num_true_) {
      return InvalidArgument("true_candidates must be a batch_size * num_true matrix, got shape ",
                             truth.shape().ToString(), " and num_true ", num_true_);
    }
    if (sampled.rank() != 1) {
      return InvalidArgument(
          "sampled_candidates must be a vector, which is typically an output "
          "from CandidateSampler; got shape ",
          sampled.shape().ToString());
    }
    absl::flat_hash_map<int64_t, int64_t> place_of;
    for (int64_t i = 0; i < sampled.num_elements(); ++i) {
      place_of[sampled.data<int64_t>()[i]] = i;
    }
    std::vector<int32_t> rows;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < truth.num_elements(); ++i) {
      const auto found = place_of.find(truth.data<int64_t>()[i]);
      if (found == place_of.end()) continue;
      rows.push_back(static_cast<int32_t>(i / num_true_));
      places.push_back(found->second);
    }
    const Shape shape{static_cast<int64_t>(rows.size())};
    c.SetOutput(0, Tensor::FromSpan<int32_t>(shape, rows));
    c.SetOutput(1, Tensor::FromSpan<int64_t>(shape, places));
    WEFT_ASSIGN_OR_RETURN(Tensor * weights, c.AllocateOutput(2, shape));
    std::fill_n(weights->data<float>(), weights->num_elements(),
                -std::numeric_limits<float>::max());
    return absl::OkStatus();
  }

 private:
  const int64_t num_true_;
};

Status HitsShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  for (int o = 0; o < 3; ++o) c.set_output(o, PartialShape({-1}));
  return absl::OkStatus();
}

void AddSampler(Catalogue& catalogue, const char* name, const std::string& documentation,
                bool has_range, KernelFactory factory) {
  OpSpec spec = CandidateSampler(name, documentation, has_range);
  catalogue.Add(std::move(spec.Kernel(std::move(factory))));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddSampler(
      catalogue, "UniformCandidateSampler",
      "Draws num_sampled classes below range_max, all as likely; different ones if `unique`.", true,
      MakeKernel<SampleKernel<Uniform>>());
  AddSampler(catalogue, "LogUniformCandidateSampler",
             "Draws num_sampled classes below range_max, class c with probability "
             "log((c + 2) / (c + 1)) / log(range_max + 1); different ones if `unique`.",
             true, MakeKernel<SampleKernel<LogUniform>>());
  AddSampler(catalogue, "AllCandidateSampler", "Every class below num_sampled, once.", false,
             MakeKernel<AllKernel>());
  catalogue.Add(OpSpec("ComputeAccidentalHits")
                    .Doc("Where a drawn class is a true one: its row of the batch, its place among "
                         "the drawn, and the lowest float, to be added to its logit.")
                    .Input("true_classes: int64")
                    .Input("sampled_candidates: int64")
                    .Output("indices: int32")
                    .Output("ids: int64")
                    .Output("weights: float")
                    .Attr("num_true: int")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Shape(HitsShape)
                    .NoGradient()
                    .Kernel(MakeKernel<AccidentalHitsKernel>()));
}

}  // namespace weft::ops::nn::candidate_sampler
