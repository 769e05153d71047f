// SPDX-License-Identifier: Apache-2.0
// Classes drawn as negative examples: noise-contrastive estimation and sampled softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/kernel/op_spec.h"
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

// How often a class of probability `p` is expected among what was drawn.
float ExpectedCount(float p, int64_t drawn, int64_t tries) {
  if (tries == drawn) return p * static_cast<float>(drawn);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

Status CheckTrueClasses(const Tensor& classes, int64_t num_true, int64_t range) {
  if (classes.rank() != 2) {
    return InvalidArgument("true_classes must be a matrix, got shape ", classes.shape().ToString());
  }
  if (classes.dim(1) != num_true) {
    return InvalidArgument("true_classes must have num_true columns, expected: ", num_true,
                           " was: ", classes.dim(1));
  }
  for (const int64_t id : classes.span<int64_t>()) {
    if (id >= 0 && id < range) continue;
    return InvalidArgument("`true_candidate` out of range [0, ", range, "), received ", id);
  }
  return absl::OkStatus();
}

template <typename Distribution>
class SampleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
    WEFT_ASSIGN_OR_RETURN(const int64_t num_sampled, c.Attr<int64_t>("num_sampled"));
    WEFT_ASSIGN_OR_RETURN(const int64_t range, c.Attr<int64_t>("range_max"));
    WEFT_ASSIGN_OR_RETURN(const bool unique, c.Attr<bool>("unique"));
    if (unique && num_sampled > range) {
      return InvalidArgument("Sampler's range is too small: ", num_sampled,
                             " different classes of ", range);
    }
    return std::make_unique<SampleKernel>(c, num_true, num_sampled, range, unique);
  }
  SampleKernel(KernelConstruction& c, int64_t num_true, int64_t num_sampled, int64_t range,
               bool unique)
      : generator_(c),
        num_true_(num_true),
        num_sampled_(num_sampled),
        range_(range),
        unique_(unique),
        distribution_(range) {}

  Status Compute(KernelContext& c) override {
    const Tensor& truth = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckTrueClasses(truth, num_true_, range_));
    WEFT_ASSIGN_OR_RETURN(Tensor * sampled, c.AllocateOutput(0, Shape{num_sampled_}));
    WEFT_ASSIGN_OR_RETURN(Tensor * of_truth, c.AllocateOutput(1, truth.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * of_sampled, c.AllocateOutput(2, Shape{num_sampled_}));
    // TensorFlow reserves 2048 words for each class.
    PhiloxWords words(generator_.Reserve(static_cast<uint64_t>(num_sampled_) * 2048 / 4));
    int64_t tries = 0;
    absl::flat_hash_set<int64_t> seen;
    for (int64_t i = 0; i < num_sampled_; ++tries) {
      WEFT_RETURN_IF_ERROR(c.cancellation().status());
      const int64_t drawn = distribution_.Draw(words);
      if (unique_ && !seen.insert(drawn).second) continue;
      sampled->data<int64_t>()[i++] = drawn;
    }
    const auto expect = [&](const Tensor& classes, Tensor* counts) {
      for (int64_t i = 0; i < classes.num_elements(); ++i) {
        counts->data<float>()[i] = ExpectedCount(
            distribution_.Probability(classes.data<int64_t>()[i]), num_sampled_, tries);
      }
    };
    expect(truth, of_truth);
    expect(*sampled, of_sampled);
    return absl::OkStatus();
  }

 private:
  GuardedPhilox generator_;
  const int64_t num_true_;
  const int64_t num_sampled_;
  const int64_t range_;
  const bool unique_;
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

Status SampleShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
  WEFT_ASSIGN_OR_RETURN(const int64_t num_sampled, c.Attr<int64_t>("num_sampled"));
  WEFT_ASSIGN_OR_RETURN(const PartialShape truth, c.WithRank(0, 2));
  c.set_output(0, PartialShape({num_sampled}));
  c.set_output(1, PartialShape({truth.dim(0), num_true}));
  c.set_output(2, PartialShape({num_sampled}));
  return absl::OkStatus();
}

Status HitsShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  for (int o = 0; o < 3; ++o) c.set_output(o, PartialShape({-1}));
  return absl::OkStatus();
}

void AddSampler(Catalogue& catalogue, const char* name, const std::string& documentation,
                bool has_range, KernelFactory factory) {
  OpSpec spec(name);
  spec.Doc(documentation +
           "\ntrue_classes: [batch, num_true]. Gives the classes, and how often each true class, "
           "and "
           "each drawn one, is expected among so many. InvalidArgument for a class out of range.")
      .Input("true_classes: int64")
      .Output("sampled_candidates: int64")
      .Output("true_expected_count: float")
      .Output("sampled_expected_count: float")
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool");
  if (has_range) spec.Attr("range_max: int >= 1");
  spec.Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Stateful()
      .Shape(SampleShape)
      .NoGradient()
      .Kernel(std::move(factory));
  catalogue.Add(std::move(spec));
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
