// SPDX-License-Identifier: Apache-2.0
// Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang, 2013): each
// example has a dual variable, which is optimised in closed form or by Newton's method.
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/fingerprint.h"

namespace weft::ops::train::sdca {
namespace {

enum class Loss { kLogistic, kSquared, kHinge, kSmoothHinge, kPoisson };

// What one example brings to its optimisation.
struct Example {
  double label, weight, dual, wx;
  double scale;  // loss partitions times the squared norm over l2, times the weight
};

constexpr int kNewtonSteps = 10;

double ClipToLabel(double dual, double label) {
  const double along = label * dual;
  return along < 0 ? 0.0 : along > 1 ? label : dual;
}

// The dual variable that maximises the dual objective.
double BestDual(Loss loss, const Example& e) {
  double x = 0;
  switch (loss) {
    case Loss::kSquared:
      return e.dual + (e.label - e.dual - e.wx) / (1 + e.scale);
    case Loss::kHinge:
      return ClipToLabel(e.dual + (e.label - e.wx) / e.scale, e.label);
    case Loss::kSmoothHinge:
      return ClipToLabel(e.dual + (e.label - e.wx - e.dual) / (e.scale + 1), e.label);
    case Loss::kLogistic:
      for (int i = 0; i < kNewtonSteps; ++i) {
        const double t = std::tanh(x);
        const double value = -2 * e.label * x - e.wx - e.scale * (0.5 * (1 + t) / e.label - e.dual);
        x -= value / (-2 * e.label - e.scale * (1 - t * t) * 0.5 / e.label);
      }
      return 0.5 * (1 + std::tanh(x)) / e.label;
    case Loss::kPoisson:
      for (int i = 0; i < kNewtonSteps; ++i) {
        const double rate = std::exp(x);
        const double value = x - e.wx - e.scale * (e.label - e.dual - rate);
        x -= value / (1 + e.scale * rate);
      }
      return e.label - std::exp(x);
  }
  return e.dual;
}

double XLogX(double x) { return x <= 0 ? 0 : x * std::log(x); }

// Of the dual variable as it was; infinite (the largest number) outside of its domain.
double DualLoss(Loss loss, const Example& e) {
  constexpr double kOutside = std::numeric_limits<double>::max();
  const double along = e.label * e.dual;
  switch (loss) {
    case Loss::kSquared:
      return e.dual * (0.5 * e.dual - e.label) * e.weight;
    case Loss::kHinge:
      return along < 0 || along > 1 ? kOutside : -along * e.weight;
    case Loss::kSmoothHinge:
      return along < 0 || along > 1 ? kOutside : (-along + 0.5 * e.dual * e.dual) * e.weight;
    case Loss::kLogistic:
      return along < 0 || along > 1 ? kOutside : (XLogX(along) + XLogX(1 - along)) * e.weight;
    case Loss::kPoisson: {
      const double rate = e.label - e.dual;
      return rate < 0 ? kOutside : rate == 0 ? 0 : rate * (std::log(rate) - 1) * e.weight;
    }
  }
  return 0;
}

double PrimalLoss(Loss loss, double wx, double label, double weight) {
  const double along = label * wx;
  switch (loss) {
    case Loss::kSquared:
      return (wx - label) * (wx - label) * weight * 0.5;
    case Loss::kHinge:
      return std::max(0.0, 1 - along) * weight;
    case Loss::kSmoothHinge:
      return along >= 1   ? 0
             : along <= 0 ? (1 - along - 0.5) * weight
                          : (1 - along) * (1 - along) * weight * 0.5;
    case Loss::kLogistic:
      return (along > 0 ? std::log1p(std::exp(-along)) : std::log1p(std::exp(along)) - along) *
             weight;
    case Loss::kPoisson:
      return (std::exp(wx) - wx * label) * weight;
  }
  return 0;
}

StatusOr<double> LabelFor(Loss loss, float label) {
  if (loss == Loss::kSquared) return static_cast<double>(label);
  if (loss == Loss::kPoisson) {
    if (label >= 0) return static_cast<double>(label);
    return InvalidArgument(
        "Only non-negative labels can be used with the Poisson log loss. Found example with "
        "label: ",
        label);
  }
  if (label == 0) return -1.0;
  if (label == 1) return 1.0;
  return InvalidArgument(
      "Only labels of 0.0 or 1.0 are supported right now. Found example with label: ", label);
}

struct Regularization {
  double l1 = 0, l2 = 1;
  double Shrink(double weight) const {
    return std::copysign(std::max(std::abs(weight) - l1 / l2, 0.0), weight);
  }
  static StatusOr<Regularization> Of(const KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const float l1, c.Attr<float>("l1"));
    WEFT_ASSIGN_OR_RETURN(const float l2, c.Attr<float>("l2"));
    return Regularization{static_cast<double>(l1), static_cast<double>(l2)};
  }
};

// One group of weights, with what the step adds to them.
struct Group {
  const float* weights;
  float* deltas;
  int64_t size;
};

// Of one example in one group: where its weights lie, and their features.
struct Feature {
  int64_t place;
  double value;
};

class SdcaKernel final : public OpKernel {
 public:
  struct Options {
    Loss loss = Loss::kLogistic;
    int sparse = 0, valued = 0, dense = 0;
    double partitions = 1;
    Regularization regularization;
  };
  explicit SdcaKernel(const Options& options) : o_(options) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    Options o;
    WEFT_ASSIGN_OR_RETURN(const auto loss, c.Attr<std::string>("loss_type"));
    o.loss = loss == "logistic_loss"       ? Loss::kLogistic
             : loss == "squared_loss"      ? Loss::kSquared
             : loss == "hinge_loss"        ? Loss::kHinge
             : loss == "smooth_hinge_loss" ? Loss::kSmoothHinge
                                           : Loss::kPoisson;
    o.sparse = static_cast<int>(c.AttrOr<int64_t>("num_sparse_features", 0));
    o.valued = static_cast<int>(c.AttrOr<int64_t>("num_sparse_features_with_values", 0));
    o.dense = static_cast<int>(c.AttrOr<int64_t>("num_dense_features", 0));
    o.partitions = static_cast<double>(c.AttrOr<int64_t>("num_loss_partitions", 1));
    if (o.sparse + o.dense == 0) {
      return InvalidArgument("Requires at least one feature to train.");
    }
    if (o.valued > o.sparse) {
      return InvalidArgument("num_sparse_features_with_values ", o.valued,
                             " is larger than num_sparse_features ", o.sparse);
    }
    WEFT_ASSIGN_OR_RETURN(o.regularization, Regularization::Of(c));
    return std::make_unique<SdcaKernel>(o);
  }

  Status Compute(KernelContext& c) override {
    const int after = 2 * o_.sparse + o_.valued + o_.dense;
    const Tensor &weights = c.input(after), &labels = c.input(after + 1),
                 &states = c.input(c.num_inputs() - 1);
    const int64_t examples = weights.num_elements();
    if (labels.num_elements() != examples) {
      return InvalidArgument("Expected ", examples, " example labels but got ",
                             labels.num_elements());
    }
    if (states.shape() != Shape{examples, 4}) {
      return InvalidArgument("Expected shape [", examples, ",4] for example_state_data, got ",
                             states.shape().ToString());
    }
    std::vector<Group> groups;
    WEFT_RETURN_IF_ERROR(TakeGroups(c, &groups));
    // features[example][group]
    std::vector<std::vector<std::vector<Feature>>> features(
        static_cast<size_t>(examples), std::vector<std::vector<Feature>>(groups.size()));
    for (int g = 0; g < o_.sparse; ++g) WEFT_RETURN_IF_ERROR(ReadSparse(c, g, &features));
    for (int g = 0; g < o_.dense; ++g) WEFT_RETURN_IF_ERROR(ReadDense(c, g, groups, &features));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, states.shape()));
    CopyElements(states, 0, states.num_elements(), out, 0);
    std::vector<size_t> order(static_cast<size_t>(examples));
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64{std::random_device{}()});
    for (const size_t i : order) {
      WEFT_RETURN_IF_ERROR(c.cancellation().status());
      WEFT_RETURN_IF_ERROR(Train(features[i], groups, labels.data<float>()[i],
                                 weights.data<float>()[i], out->data<float>() + 4 * i));
    }
    return absl::OkStatus();
  }

 private:
  // The inputs with weights: sparse groups, then dense ones; their deltas are the outputs.
  Status TakeGroups(KernelContext& c, std::vector<Group>* groups) const {
    const int first = 2 * o_.sparse + o_.valued + o_.dense + 2 + o_.sparse;
    for (int g = 0; g < o_.sparse + o_.dense; ++g) {
      const Tensor& weights = c.input(first + g);
      if (g < o_.sparse &&
          c.input(first - o_.sparse + g).num_elements() != weights.num_elements()) {
        return InvalidArgument("sparse_indices and sparse_weights of group ", g,
                               " must have the same length");
      }
      WEFT_ASSIGN_OR_RETURN(Tensor * deltas, c.AllocateOutput(1 + g, weights.shape()));
      ClearElements(deltas, 0, deltas->num_elements());
      groups->push_back({weights.data<float>(), deltas->data<float>(), weights.num_elements()});
    }
    return absl::OkStatus();
  }

  // Weights of sparse groups are found by the numbers of their features.
  Status ReadSparse(const KernelContext& c, int g,
                    std::vector<std::vector<std::vector<Feature>>>* features) const {
    const Tensor &examples = c.input(g), &numbers = c.input(o_.sparse + g);
    const Tensor& known = c.input(2 * o_.sparse + o_.valued + o_.dense + 2 + g);
    const Tensor* values = g < o_.valued ? &c.input(2 * o_.sparse + g) : nullptr;
    if (examples.num_elements() != numbers.num_elements() ||
        (values != nullptr && values->num_elements() != numbers.num_elements())) {
      return InvalidArgument("Found mismatched example_indices and feature_indices in group ", g,
                             ": ", examples.shape().ToString(), " vs ", numbers.shape().ToString());
    }
    absl::flat_hash_map<int64_t, int64_t> places;
    for (int64_t i = 0; i < known.num_elements(); ++i) places[known.data<int64_t>()[i]] = i;
    for (int64_t i = 0; i < examples.num_elements(); ++i) {
      const int64_t example = examples.data<int64_t>()[i];
      if (example < 0 || example >= static_cast<int64_t>(features->size())) {
        return InvalidArgument("Found an example index out of valid range: ", example);
      }
      const auto found = places.find(numbers.data<int64_t>()[i]);
      if (found == places.end()) {
        return InvalidArgument("Found sparse feature indices out of valid range: ",
                               numbers.data<int64_t>()[i]);
      }
      (*features)[static_cast<size_t>(example)][static_cast<size_t>(g)].push_back(
          {found->second, values == nullptr ? 1.0 : static_cast<double>(values->data<float>()[i])});
    }
    for (const auto& example : *features) {
      absl::flat_hash_set<int64_t> seen;
      for (const Feature& feature : example[static_cast<size_t>(g)]) {
        if (!seen.insert(feature.place).second) {
          return InvalidArgument("Duplicate index in sparse vector.");
        }
      }
    }
    return absl::OkStatus();
  }

  Status ReadDense(const KernelContext& c, int g, const std::vector<Group>& groups,
                   std::vector<std::vector<std::vector<Feature>>>* features) const {
    const Tensor& values = c.input(2 * o_.sparse + o_.valued + g);
    const auto group = static_cast<size_t>(o_.sparse + g);
    if (values.rank() != 2 || values.dim(0) != static_cast<int64_t>(features->size())) {
      return InvalidArgument("Dense features at index ", g,
                             " must be rank 2 with a row for each example, got ",
                             values.shape().ToString());
    }
    if (values.dim(1) > groups[group].size) {
      return InvalidArgument("More dense features than we have parameters for: ", values.dim(1));
    }
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      (*features)[static_cast<size_t>(i / values.dim(1))][group].push_back(
          {i % values.dim(1), static_cast<double>(values.data<float>()[i])});
    }
    return absl::OkStatus();
  }

  // One example: its dual variable, and the weights that follow from it.
  Status Train(const std::vector<std::vector<Feature>>& features, const std::vector<Group>& groups,
               float given, float weight, float* state) const {
    const Regularization& r = o_.regularization;
    Example e{0, static_cast<double>(weight), static_cast<double>(state[0]), 0, 0};
    WEFT_ASSIGN_OR_RETURN(e.label, LabelFor(o_.loss, given));
    double before = 0, norm = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Feature& feature : features[g]) {
        const auto old = static_cast<double>(groups[g].weights[feature.place]);
        const auto delta = static_cast<double>(groups[g].deltas[feature.place]);
        before += feature.value * r.Shrink(old);
        e.wx += feature.value * r.Shrink(old + delta * o_.partitions);
        norm += feature.value * feature.value;
      }
    }
    e.scale = o_.partitions * norm / r.l2 * e.weight;
    const double dual = BestDual(o_.loss, e);
    const double step = (dual - e.dual) * e.weight / r.l2;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Feature& feature : features[g]) {
        groups[g].deltas[feature.place] += static_cast<float>(feature.value * step);
      }
    }
    state[0] = static_cast<float>(dual);
    state[1] = static_cast<float>(PrimalLoss(o_.loss, before, e.label, e.weight));
    state[2] = static_cast<float>(DualLoss(o_.loss, e));
    state[3] = weight;
    return absl::OkStatus();
  }

  const Options o_;
};

class ShrinkKernel final : public OpKernel {
 public:
  explicit ShrinkKernel(const Regularization& regularization) : regularization_(regularization) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Regularization regularization, Regularization::Of(c));
    return std::make_unique<ShrinkKernel>(regularization);
  }
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_inputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(i));
      WEFT_RETURN_IF_ERROR(variable->Update([&](Tensor& value) {
        for (float& weight : value.mutable_span<float>()) {
          weight = static_cast<float>(regularization_.Shrink(static_cast<double>(weight)));
        }
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

 private:
  const Regularization regularization_;
};

class FingerprintKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.rank() != 1) {
      return InvalidArgument("Input must be a vector, got shape ", in.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{in.dim(0), 2}));
    for (int64_t i = 0; i < in.dim(0); ++i) {
      auto [low, high] = Fingerprint128(in.data<std::string>()[i]);
      if (low < 2) low += ~uint64_t{1};  // 0 and 1 stand for keys that are not there
      out->data<int64_t>()[2 * i] = static_cast<int64_t>(low);
      out->data<int64_t>()[2 * i + 1] = static_cast<int64_t>(high);
    }
    return absl::OkStatus();
  }
};

Status OptimizerShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t sparse, c.Attr<int64_t>("num_sparse_features"));
  WEFT_ASSIGN_OR_RETURN(const int64_t dense, c.Attr<int64_t>("num_dense_features"));
  const auto groups = static_cast<int>(sparse + dense);
  const int first = c.num_inputs() - 1 - groups;
  c.set_output(0, c.input(c.num_inputs() - 1));
  for (int g = 0; g < groups; ++g) c.set_output(1 + g, c.input(first + g));
  return absl::OkStatus();
}

void AddOptimizer(Catalogue& catalogue, bool is_second) {
  catalogue.Add(
      OpSpec(is_second ? "SdcaOptimizerV2" : "SdcaOptimizer")
          .Doc("One pass of stochastic dual coordinate ascent over a batch of examples, in random "
               "order: what to add to the weights, and each example's dual variable, losses and "
               "weight.\n"
               "Examples are taken alike, whether the op is adaptive or not.")
          .Input("sparse_example_indices: num_sparse_features * int64")
          .Input("sparse_feature_indices: num_sparse_features * int64")
          .Input("sparse_feature_values: num_sparse_features_with_values * float")
          .Input("dense_features: num_dense_features * float")
          .Input("example_weights: float")
          .Input("example_labels: float")
          .Input("sparse_indices: num_sparse_features * int64")
          .Input("sparse_weights: num_sparse_features * float")
          .Input("dense_weights: num_dense_features * float")
          .Input("example_state_data: float")
          .Output("out_example_state_data: float")
          .Output("out_delta_sparse_weights: num_sparse_features * float")
          .Output("out_delta_dense_weights: num_dense_features * float")
          .Attr("loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', "
                "'poisson_loss'}")
          .Attr(is_second ? "adaptive: bool = false" : "adaptative: bool = false")
          .Attr("num_sparse_features: int >= 0")
          .Attr("num_sparse_features_with_values: int >= 0")
          .Attr("num_dense_features: int >= 0")
          .Attr("l1: float")
          .Attr("l2: float")
          .Attr("num_loss_partitions: int >= 1")
          .Attr("num_inner_iterations: int >= 1")
          .Shape(OptimizerShape)
          .NoGradient()
          .Kernel(MakeKernel<SdcaKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddOptimizer(catalogue, false);
  AddOptimizer(catalogue, true);
  catalogue.Add(OpSpec("SdcaShrinkL1")
                    .Doc("Moves weights toward 0 by l1 / l2, in place.")
                    .Input("weights: num_features * Ref(float)")
                    .Attr("num_features: int >= 0")
                    .Attr("l1: float")
                    .Attr("l2: float")
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<ShrinkKernel>()));
  catalogue.Add(OpSpec("SdcaFprint")
                    .Doc("Two numbers for each string, the same wherever it occurs: "
                         "[strings, 2].")
                    .Input("input: string")
                    .Output("output: int64")
                    .Shape([](ShapeContext& c) {
                      WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 1));
                      c.set_output(0, PartialShape({in.dim(0), 2}));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<FingerprintKernel>()));
}

}  // namespace weft::ops::train::sdca
