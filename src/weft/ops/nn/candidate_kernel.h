// SPDX-License-Identifier: Apache-2.0
// What samplers of classes share: their attributes, their checks, the draw of a batch.
#pragma once

#include <cmath>
#include <string>

#include "absl/container/flat_hash_set.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/philox_kernel.h"

namespace weft::ops::nn {

struct CandidateOptions {
  int64_t num_true = 1;
  int64_t num_sampled = 1;
  int64_t range = 1;  // classes are 0 to range - 1
  bool unique = false;
};

inline StatusOr<CandidateOptions> ReadCandidateOptions(KernelConstruction& c) {
  CandidateOptions options;
  WEFT_ASSIGN_OR_RETURN(options.num_true, c.Attr<int64_t>("num_true"));
  WEFT_ASSIGN_OR_RETURN(options.num_sampled, c.Attr<int64_t>("num_sampled"));
  WEFT_ASSIGN_OR_RETURN(options.range, c.Attr<int64_t>("range_max"));
  WEFT_ASSIGN_OR_RETURN(options.unique, c.Attr<bool>("unique"));
  if (options.unique && options.num_sampled > options.range) {
    return InvalidArgument("Sampler's range is too small: ", options.num_sampled,
                           " different classes of ", options.range);
  }
  return options;
}

inline Status CheckTrueClasses(const Tensor& classes, int64_t num_true, int64_t range) {
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

// How often a class of probability `p` is expected among what was drawn.
inline float ExpectedCount(float p, int64_t drawn, int64_t tries) {
  if (tries == drawn) return p * static_cast<float>(drawn);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

// Draws with distribution.Draw(words) and counts with distribution.Probability(class), where input
// 0 is checked.
template <typename Distribution>
Status SampleCandidates(KernelContext& c, const CandidateOptions& options, GuardedPhilox& generator,
                        const Distribution& distribution) {
  const Tensor& truth = c.input(0);
  const Shape drawn_shape{options.num_sampled};
  WEFT_ASSIGN_OR_RETURN(Tensor * sampled, c.AllocateOutput(0, drawn_shape));
  WEFT_ASSIGN_OR_RETURN(Tensor * of_truth, c.AllocateOutput(1, truth.shape()));
  WEFT_ASSIGN_OR_RETURN(Tensor * of_sampled, c.AllocateOutput(2, drawn_shape));
  // TensorFlow reserves 2048 words for each class.
  PhiloxWords words(generator.Reserve(static_cast<uint64_t>(options.num_sampled) * 2048 / 4));
  int64_t tries = 0;
  absl::flat_hash_set<int64_t> seen;
  for (int64_t i = 0; i < options.num_sampled; ++tries) {
    WEFT_RETURN_IF_ERROR(c.cancellation().status());
    const int64_t drawn = distribution.Draw(words);
    if (options.unique && !seen.insert(drawn).second) continue;
    sampled->data<int64_t>()[i++] = drawn;
  }
  const auto expect = [&](const Tensor& classes, Tensor* counts) {
    for (int64_t i = 0; i < classes.num_elements(); ++i) {
      counts->data<float>()[i] = ExpectedCount(distribution.Probability(classes.data<int64_t>()[i]),
                                               options.num_sampled, tries);
    }
  };
  expect(truth, of_truth);
  expect(*sampled, of_sampled);
  return absl::OkStatus();
}

inline Status CandidateShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
  WEFT_ASSIGN_OR_RETURN(const int64_t num_sampled, c.Attr<int64_t>("num_sampled"));
  WEFT_ASSIGN_OR_RETURN(const PartialShape truth, c.WithRank(0, 2));
  c.set_output(0, PartialShape({num_sampled}));
  c.set_output(1, PartialShape({truth.dim(0), num_true}));
  c.set_output(2, PartialShape({num_sampled}));
  return absl::OkStatus();
}

// The signature without attributes of a sampler's own.
inline OpSpec CandidateSampler(const char* name, const std::string& documentation, bool has_range) {
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
  spec.Attr("seed: int = 0").Attr("seed2: int = 0").Stateful().Shape(CandidateShape).NoGradient();
  return spec;
}

}  // namespace weft::ops::nn
