// SPDX-License-Identifier: Apache-2.0
// Draws from distributions that are given by logits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/distribution_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::multinomial {
namespace {

using Logits = TypeList<float, double, Half, Bfloat16>;

// Of an op whose generator `reserve(steps)` gives.
template <typename Reserve>
class Draws {
 public:
  static Status Fill(KernelContext& c, const Reserve& reserve) {
    const Tensor &logits = c.input(0), &count = c.input(1);
    if (logits.rank() != 2) {
      return InvalidArgument("logits should be a matrix, got shape ", logits.shape().ToString());
    }
    if (count.rank() != 0) {
      return InvalidArgument("num_samples should be a scalar, got shape ",
                             count.shape().ToString());
    }
    const int64_t draws = count.scalar<int32_t>();
    if (draws < 0) return InvalidArgument("num_samples should be nonnegative, got ", draws);
    const int64_t rows = logits.dim(0), classes = logits.dim(1);
    if (classes < 1) return InvalidArgument("num_classes should be positive, got ", classes);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{rows, draws}));
    if (out->num_elements() == 0) return absl::OkStatus();
    // Two words a draw, with room to spare, as TensorFlow reserves them.
    WEFT_ASSIGN_OR_RETURN(const Philox start,
                          reserve(static_cast<uint64_t>(rows * ((draws + 3) / 4 * 4) * 2) * 256));
    PhiloxWords words(start);
    std::vector<double> sums(static_cast<size_t>(classes));
    for (int64_t row = 0; row < rows; ++row) {
      VisitDType(logits.dtype(), Logits(),
                 [&]<typename T>() { Accumulate(logits.data<T>() + row * classes, &sums); });
      for (int64_t i = 0; i < draws; ++i) {
        const uint32_t drawn[] = {words.Next(), words.Next()};
        const double wanted = UniformFrom<double>(drawn) * sums.back();
        const int64_t found = std::upper_bound(sums.begin(), sums.end(), wanted) - sums.begin();
        if (out->dtype() == DType::kInt64) {
          out->data<int64_t>()[row * draws + i] = found;
        } else {
          out->data<int32_t>()[row * draws + i] = static_cast<int32_t>(found);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  // Sums of exp(logit), up to each class; infinite logits and NaN count nothing.
  template <typename T>
  static void Accumulate(const T* logits, std::vector<double>* sums) {
    const auto is_finite = [](T x) { return std::isfinite(static_cast<double>(x)); };
    double highest = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < sums->size(); ++j) {
      if (is_finite(logits[j])) highest = std::max(highest, static_cast<double>(logits[j]));
    }
    double total = 0;
    for (size_t j = 0; j < sums->size(); ++j) {
      if (is_finite(logits[j])) total += std::exp(static_cast<double>(logits[j]) - highest);
      (*sums)[j] = total;
    }
  }
};

class MultinomialKernel final : public OpKernel {
 public:
  explicit MultinomialKernel(KernelConstruction& k) : generator_(k) {}
  Status Compute(KernelContext& c) override {
    const auto reserve = [this](uint64_t steps) -> StatusOr<Philox> {
      return generator_.Reserve(steps);
    };
    return Draws<decltype(reserve)>::Fill(c, reserve);
  }

 private:
  GuardedPhilox generator_;
};

class StatelessKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const auto reserve = [&c](uint64_t) { return GeneratorOfSeed(c.input(2)); };
    WEFT_RETURN_IF_ERROR(reserve(0).status());
    return Draws<decltype(reserve)>::Fill(c, reserve);
  }
};

Status MultinomialShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape logits, c.WithRank(0, 2));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const Tensor* draws = c.constant(1);
  const bool known = draws != nullptr && draws->num_elements() == 1;
  c.set_output(0, PartialShape({logits.dim(0),
                                known ? std::max<int64_t>(-1, draws->data<int32_t>()[0]) : -1}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Multinomial")
          .Doc("Draws num_samples classes for each row of logits, class j with probability "
               "proportional to exp(logits[row, j]).\nlogits: [rows, classes]; output: [rows, "
               "num_samples].")
          .Input("logits: T")
          .Input("num_samples: int32")
          .HostInput("num_samples")
          .Output("output: output_dtype")
          .Attr("seed: int = 0")
          .Attr("seed2: int = 0")
          .Attr("T: realnumbertype")
          .Attr("output_dtype: {int32, int64} = DT_INT64")
          .Stateful()
          .Shape(MultinomialShape)
          .NoGradient()
          .Kernel(
              {.types = {{"T", DTypesOf(Logits())}}, .factory = MakeKernel<MultinomialKernel>()}));
  catalogue.Add(OpSpec("StatelessMultinomial")
                    .Doc("Multinomial by two seeds: the same draws for equal seeds.")
                    .Input("logits: T")
                    .Input("num_samples: int32")
                    .HostInput("num_samples")
                    .Input("seed: Tseed")
                    .HostInput("seed")
                    .Output("output: output_dtype")
                    .Attr("T: realnumbertype")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Attr("output_dtype: {int32, int64} = DT_INT64")
                    .Shape(MultinomialShape)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf(Logits())}},
                             .factory = MakeKernel<StatelessKernel>()}));
}

}  // namespace weft::ops::random::multinomial
