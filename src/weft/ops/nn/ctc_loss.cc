// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: the loss of labels whose places in time are not known
// (Graves and others, 2006).
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"

namespace weft::ops::nn::ctc_loss {
namespace {

using Labels = std::vector<int32_t>;

struct Options {
  bool collapses_first = false;  // equal neighbours among the labels become one
  bool merges_repeated = true;   // equal neighbours among the outputs are one label
  bool ignores_longer = false;   // labels that do not fit in time have no loss
};

template <typename T>
constexpr T kLogZero = -std::numeric_limits<T>::infinity();

template <typename T>
T LogSum(T a, T b) {
  if (a == kLogZero<T>) return b;
  if (b == kLogZero<T>) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// The loss of one sequence. Places u of `path` are the labels with a blank before, between and
// after them; a way through them is forward by 0, 1 or 2 places each step.
template <typename T>
class Lattice {
 public:
  // `probabilities` is [steps, classes].
  Lattice(const Labels& labels, int32_t blank, int64_t steps, bool merges, std::vector<T> y)
      : classes_(blank + 1), steps_(steps), merges_(merges), blank_(blank), y_(std::move(y)) {
    path_.push_back(blank);
    for (const int32_t label : labels) {
      path_.push_back(label);
      path_.push_back(blank);
    }
    places_ = static_cast<int64_t>(path_.size());
    alpha_.assign(static_cast<size_t>(steps * places_), kLogZero<T>);
    beta_ = alpha_;
    Forward();
    Backward();
    for (int64_t u = 0; u < places_; ++u) {
      log_probability_ = LogSum(log_probability_, Alpha(0, u) + Beta(0, u));
    }
  }

  T loss() const { return -log_probability_; }

  // Of step t's inputs before the softmax, `stride` elements apart from step to step.
  void WriteGradient(T* out, int64_t stride) const {
    std::vector<T> sums(static_cast<size_t>(classes_));
    for (int64_t t = 0; t < steps_; ++t) {
      const T* y = y_.data() + t * classes_;
      T* to = out + t * stride;
      if (log_probability_ == kLogZero<T>) {  // no way leads through
        std::copy_n(y, classes_, to);
        continue;
      }
      std::fill(sums.begin(), sums.end(), kLogZero<T>);
      for (int64_t u = 0; u < places_; ++u) {
        T& sum = sums[static_cast<size_t>(path_[static_cast<size_t>(u)])];
        sum = LogSum(sum, Alpha(t, u) + Beta(t, u));
      }
      for (int64_t l = 0; l < classes_; ++l) {
        to[l] = y[l] - static_cast<T>(std::exp(sums[static_cast<size_t>(l)] - log_probability_));
      }
    }
  }

 private:
  T& Alpha(int64_t t, int64_t u) { return alpha_[static_cast<size_t>(t * places_ + u)]; }
  T& Beta(int64_t t, int64_t u) { return beta_[static_cast<size_t>(t * places_ + u)]; }
  T Alpha(int64_t t, int64_t u) const { return alpha_[static_cast<size_t>(t * places_ + u)]; }
  T Beta(int64_t t, int64_t u) const { return beta_[static_cast<size_t>(t * places_ + u)]; }
  int32_t Label(int64_t u) const { return path_[static_cast<size_t>(u)]; }
  T LogY(int64_t t, int64_t u) const {
    return std::log(y_[static_cast<size_t>(t * classes_ + Label(u))]);
  }
  // Places that can be reached by step t and from which the end can still be.
  int64_t First(int64_t t) const { return std::max<int64_t>(0, places_ - 2 * (steps_ - t)); }
  int64_t Last(int64_t t) const { return std::min(places_, 2 * (t + 1)); }
  bool MayStay(int64_t u) const { return merges_ || Label(u) == blank_; }
  // From u to u + 2, over the blank between them.
  bool MaySkip(int64_t u) const {
    return Label(u) != blank_ && !(merges_ && Label(u) == Label(u + 2));
  }

  void Forward() {
    Alpha(0, 0) = LogY(0, 0);
    if (places_ > 1) Alpha(0, 1) = LogY(0, 1);
    for (int64_t t = 1; t < steps_; ++t) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = MayStay(u) ? Alpha(t - 1, u) : kLogZero<T>;
        if (u > 0) sum = LogSum(sum, Alpha(t - 1, u - 1));
        if (u > 1 && MaySkip(u - 2)) sum = LogSum(sum, Alpha(t - 1, u - 2));
        Alpha(t, u) = LogY(t, u) + sum;
      }
    }
  }

  void Backward() {
    for (int64_t u = std::max<int64_t>(0, places_ - 2); u < places_; ++u) Beta(steps_ - 1, u) = 0;
    for (int64_t t = steps_ - 1; t-- > 0;) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = MayStay(u) ? Beta(t + 1, u) + LogY(t + 1, u) : kLogZero<T>;
        if (u + 1 < places_) sum = LogSum(sum, Beta(t + 1, u + 1) + LogY(t + 1, u + 1));
        if (u + 2 < places_ && MaySkip(u)) {
          sum = LogSum(sum, Beta(t + 1, u + 2) + LogY(t + 1, u + 2));
        }
        Beta(t, u) = sum;
      }
    }
  }

  const int64_t classes_, steps_;
  const bool merges_;
  const int32_t blank_;
  const std::vector<T> y_;
  Labels path_;
  int64_t places_ = 0;
  std::vector<T> alpha_, beta_;
  T log_probability_ = kLogZero<T>;
};

// The labels of each sequence, as they stand in the sparse input.
StatusOr<std::vector<Labels>> LabelsOf(const Tensor& indices, const Tensor& values, int64_t batch) {
  if (indices.rank() != 2 || indices.dim(1) < 2) {
    return InvalidArgument("labels_indices is not a matrix of two columns, got ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("labels_values is not a vector, got ", values.shape().ToString());
  }
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: ",
        indices.shape().ToString(), " vs. ", values.shape().ToString());
  }
  std::vector<Labels> labels(static_cast<size_t>(batch));
  const int64_t* rows = indices.data<int64_t>();
  const int64_t columns = indices.dim(1);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t n = rows[i * columns], at = rows[i * columns + 1];
    if (n < 0 || n >= batch || at < 0) {
      return InvalidArgument("labels batch index must be between 0 and ", batch, " but saw: ", n,
                             " with column ", at);
    }
    if (i > 0) {
      const int64_t n_before = rows[(i - 1) * columns], before = rows[(i - 1) * columns + 1];
      if (n < n_before || (n == n_before && at <= before)) {
        return InvalidArgument("labels SparseTensor is not valid: indices[", i, "] = [", n, ",", at,
                               "] is out of order");
      }
    }
    labels[static_cast<size_t>(n)].push_back(values.data<int32_t>()[i]);
  }
  return labels;
}

// Those that stand before blanks, without repetitions where they are collapsed.
StatusOr<Labels> CleanLabels(const Options& options, const Labels& given, int64_t n,
                             int32_t blank) {
  Labels labels;
  bool is_over = false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (i > 0 && options.collapses_first && given[i] == given[i - 1]) continue;
    if (given[i] >= blank) {
      is_over = true;
    } else if (is_over) {
      return InvalidArgument(
          "Saw a non-null label (index >= num_classes - 1) following a null label, batch: ", n,
          " num_classes: ", blank + 1, " labels: ", absl::StrJoin(given, ","));
    } else if (given[i] < 0) {
      return InvalidArgument("All labels must be nonnegative integers, batch: ", n,
                             " labels: ", absl::StrJoin(given, ","));
    } else {
      labels.push_back(given[i]);
    }
  }
  return labels;
}

class CtcLossKernel final : public OpKernel {
 public:
  explicit CtcLossKernel(KernelConstruction& c)
      : options_{c.AttrOr<bool>("preprocess_collapse_repeated", false),
                 c.AttrOr<bool>("ctc_merge_repeated", true),
                 c.AttrOr<bool>("ignore_longer_outputs_than_inputs", false)} {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.rank() != 3) {
      return InvalidArgument("inputs is not a 3-Tensor, got ", in.shape().ToString());
    }
    const int64_t batch = in.dim(1), classes = in.dim(2);
    if (batch == 0) return InvalidArgument("batch_size must not be 0");
    if (classes == 0 || classes > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("num_classes must be between 1 and 2^31 - 1, got ", classes);
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Labels> given, LabelsOf(c.input(1), c.input(2), batch));
    WEFT_RETURN_IF_ERROR(CheckLengths(c.input(3), in));
    const auto* lengths = c.input(3).data<int32_t>();
    std::vector<Labels> labels;
    for (int64_t n = 0; n < batch; ++n) {
      const Labels& one = given[static_cast<size_t>(n)];
      WEFT_ASSIGN_OR_RETURN(labels.emplace_back(),
                            CleanLabels(options_, one, n, static_cast<int32_t>(classes - 1)));
      if (!options_.ignores_longer && static_cast<int64_t>(one.size()) > lengths[n]) {
        return InvalidArgument("Not enough time for target transition sequence (required: ",
                               one.size(), ", available: ", lengths[n], ")", n,
                               "You can turn this error into a warning by using the flag "
                               "ignore_longer_outputs_than_inputs");
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * loss, c.AllocateOutput(0, Shape{batch}));
    WEFT_ASSIGN_OR_RETURN(Tensor * gradient, c.AllocateOutput(1, in.shape()));
    ClearElements(loss, 0, batch);
    ClearElements(gradient, 0, gradient->num_elements());
    VisitDType(in.dtype(), TypeList<float, double>(), [&]<typename T>() {
      c.ParallelFor(batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end && !c.cancellation().IsCancelled(); ++n) {
          if (lengths[n] == 0 ||
              static_cast<int64_t>(given[static_cast<size_t>(n)].size()) > lengths[n]) {
            continue;
          }
          const Lattice<T> lattice(labels[static_cast<size_t>(n)],
                                   static_cast<int32_t>(classes - 1), lengths[n],
                                   options_.merges_repeated, Softmax<T>(in, n, lengths[n]));
          loss->data<T>()[n] = lattice.loss();
          lattice.WriteGradient(gradient->data<T>() + n * classes, batch * classes);
        }
      });
    });
    return c.cancellation().status();
  }

 private:
  static Status CheckLengths(const Tensor& lengths, const Tensor& in) {
    if (lengths.rank() != 1) {
      return InvalidArgument("sequence_length is not a vector, got ", lengths.shape().ToString());
    }
    if (lengths.dim(0) != in.dim(1)) {
      return InvalidArgument("len(sequence_length) != batch_size.  len(sequence_length):  ",
                             lengths.dim(0), " batch_size: ", in.dim(1));
    }
    for (int64_t n = 0; n < lengths.dim(0); ++n) {
      const int32_t length = lengths.data<int32_t>()[n];
      if (length < 0 || length > in.dim(0)) {
        return InvalidArgument("sequence_length(", n, ") must be between 0 and ", in.dim(0),
                               ", got ", length);
      }
    }
    return absl::OkStatus();
  }

  // Sequence n's probabilities, [steps, classes].
  template <typename T>
  static std::vector<T> Softmax(const Tensor& in, int64_t n, int64_t steps) {
    const int64_t batch = in.dim(1), classes = in.dim(2);
    std::vector<T> y(static_cast<size_t>(steps * classes));
    for (int64_t t = 0; t < steps; ++t) {
      const T* row = in.data<T>() + (t * batch + n) * classes;
      T* to = y.data() + t * classes;
      const T largest = *std::max_element(row, row + classes);
      T sum = 0;
      for (int64_t l = 0; l < classes; ++l) sum += to[l] = std::exp(row[l] - largest);
      for (int64_t l = 0; l < classes; ++l) to[l] /= sum;
    }
    return y;
  }

  const Options options_;
};

Status LossShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape in, c.WithRank(0, 3));
  c.set_output(0, PartialShape({in.dim(1)}));
  c.set_output(1, std::move(in));
  return absl::OkStatus();
}

// The op computes the gradient beside the loss.
Status LossGradient(GradientContext& c) {
  const Endpoint column = c.Op("ExpandDims", {c.gradient(), c.builder().Scalar<int32_t>(-1)});
  c.set_input(0, c.Op("Mul", {column, c.Op("PreventGradient", {c.output(1)})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("CTCLoss")
          .Doc(
              "The loss of label sequences under inputs [steps, batch, classes], the last class of "
              "which is the blank, and its gradient.\n"
              "Labels are sparse: rows of labels_indices are sequence and place. InvalidArgument "
              "where labels do not fit in time, unless ignore_longer_outputs_than_inputs.")
          .Input("inputs: T")
          .Input("labels_indices: int64")
          .Input("labels_values: int32")
          .Input("sequence_length: int32")
          .Output("loss: T")
          .Output("gradient: T")
          .Attr("preprocess_collapse_repeated: bool = false")
          .Attr("ctc_merge_repeated: bool = true")
          .Attr("ignore_longer_outputs_than_inputs: bool = false")
          .Attr("T: {float, double} = DT_FLOAT")
          .Shape(LossShape)
          .Gradient(LossGradient)
          .Kernel(MakeKernel<CtcLossKernel>()));
}

}  // namespace weft::ops::nn::ctc_loss
