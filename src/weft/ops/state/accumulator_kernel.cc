// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/accumulator_kernel.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "weft/ops/elements.h"
#include "weft/ops/state/gradient_sums_kernel.h"

namespace weft::ops::state {

void Accumulator::Tell(std::list<Taker>& finished) {
  for (Taker& taker : finished) {
    taker.call.Detach();
    taker.done(std::move(taker.result));
  }
}

void Accumulator::Flush(std::list<Taker>* finished) {
  while (!takers_.empty()) {
    Taker& taker = takers_.front();
    if (removed_) {
      taker.result = Cancelled("Accumulator '", options_.name, "' was removed.");
    } else if (count_ >= taker.num_required) {
      taker.result = Finish(count_);
      count_ = 0;
      ++global_step_;
    } else {
      return;
    }
    finished->splice(finished->end(), takers_, takers_.begin());
  }
}

Status Accumulator::Apply(int64_t local_step, const AccumulatedGradient& gradient) {
  std::list<Taker> finished;
  {
    absl::MutexLock lock(&mutex_);
    if (local_step < global_step_) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(Add(gradient, count_));
    ++count_;
    Flush(&finished);
  }
  Tell(finished);
  return absl::OkStatus();
}

void Accumulator::Take(const Caller& caller, int64_t num_required, TakeDone done) {
  if (caller.cancellation->IsCancelled())
    return done(Cancelled("TakeGrad operation was cancelled"));
  std::list<Taker> finished;
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t id = next_id_++;
    Taker& taker = takers_.emplace_back();
    taker.id = id;
    taker.num_required = num_required;
    taker.done = std::move(done);
    Flush(&finished);
    // Still there: it waits, so it must hear of cancellation.
    if (!takers_.empty() && takers_.back().id == id &&
        !takers_.back().call.Begin(
            caller, absl::StrCat(num_required, " gradients of accumulator '", options_.name, "'"),
            [self = Ref<Accumulator>(this), id](const Status&) { self->CancelTaker(id); })) {
      takers_.back().result = Cancelled("TakeGrad operation was cancelled");
      finished.splice(finished.end(), takers_, std::prev(takers_.end()));
    }
  }
  Tell(finished);
}

void Accumulator::CancelTaker(uint64_t id) {
  std::list<Taker> finished;
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(takers_.begin(), takers_.end(), [id](const Taker& t) { return t.id == id; });
    if (found == takers_.end()) return;
    found->result = Cancelled("TakeGrad operation was cancelled");
    finished.splice(finished.end(), takers_, found);
    Flush(&finished);
  }
  Tell(finished);
}

int64_t Accumulator::num_accumulated() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

void Accumulator::SetGlobalStep(int64_t step) {
  absl::MutexLock lock(&mutex_);
  if (step < global_step_) {
    WEFT_LOG(WARNING) << "Accumulator '" << options_.name << "' goes back from step "
                      << global_step_ << " to " << step;
  }
  global_step_ = step;
}

std::string Accumulator::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat("accumulator of ", DTypeName(options_.dtype), options_.shape.ToString(),
                      ", step ", global_step_, ", ", count_, " gradients");
}

void Accumulator::Close() {
  std::list<Taker> finished;
  {
    absl::MutexLock lock(&mutex_);
    removed_ = true;
    Flush(&finished);
  }
  Tell(finished);
}

namespace {

Status MakeOwn(Tensor* tensor) {
  if (tensor->HasOneRef()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(*tensor, tensor->Clone());
  return absl::OkStatus();
}

class DenseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;

 protected:
  // The first gradient is shared with who gave it, and copied when the second comes.
  Status Add(const AccumulatedGradient& gradient, int64_t count) override {
    const Tensor& values = gradient.values;
    const PartialShape expected = count > 0 ? PartialShape(sum_.shape()) : options().shape;
    if (!expected.IsCompatibleWith(values.shape()) ||
        !options().shape.IsCompatibleWith(values.shape())) {
      return InvalidArgument("Shape mismatch: expected ", expected.ToString(), ", got ",
                             values.shape().ToString());
    }
    if (count == 0) {
      sum_ = values;
      return absl::OkStatus();
    }
    WEFT_RETURN_IF_ERROR(MakeOwn(&sum_));
    AddGradient(&sum_, 0, values, 0, sum_.num_elements());
    return absl::OkStatus();
  }

  StatusOr<AccumulatedGradient> Finish(int64_t count) override {
    const Tensor nothing;
    AccumulatedGradient result{.values = std::move(sum_)};
    sum_ = nothing;
    if (!options().is_mean || count == 1) return result;
    WEFT_RETURN_IF_ERROR(MakeOwn(&result.values));
    DivideGradient(&result.values, 0, result.values.num_elements(), count);
    return result;
  }

 private:
  Tensor sum_;
};

// Rows with the number of gradients that each is the sum of. Gradients are merged as sorted lists,
// whether or not they are sorted, as TensorFlow does.
class SparseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;

 protected:
  Status Add(const AccumulatedGradient& gradient, int64_t count) override {
    WEFT_RETURN_IF_ERROR(CheckIndices(gradient));
    WEFT_RETURN_IF_ERROR(CheckShapes(gradient, count));
    const absl::Span<const int64_t> rows = gradient.indices.span<int64_t>();
    if (count == 0) {
      rows_.assign(rows.begin(), rows.end());
      counts_.assign(rows.size(), 1);
      values_ = gradient.values;
      return absl::OkStatus();
    }
    return Merge(rows, gradient.values);
  }

  StatusOr<AccumulatedGradient> Finish(int64_t) override {
    AccumulatedGradient result;
    result.dense_shape = DenseShape();
    result.indices = Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(rows_.size())}, rows_);
    const Tensor nothing;
    result.values = std::move(values_);
    values_ = nothing;
    rows_.clear();
    const std::vector<int64_t> counts = std::move(counts_);
    counts_ = {};
    if (!options().is_mean) return result;
    WEFT_RETURN_IF_ERROR(MakeOwn(&result.values));
    const int64_t row_size = RowSize(result.values.shape());
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 1) continue;
      DivideGradient(&result.values, static_cast<int64_t>(i) * row_size, row_size, counts[i]);
    }
    return result;
  }

 private:
  static int64_t RowSize(const Shape& shape) {
    int64_t size = 1;
    for (int d = 1; d < shape.rank(); ++d) size *= shape.dim(d);
    return size;
  }

  Status CheckIndices(const AccumulatedGradient& gradient) const {
    const Shape& indices = gradient.indices.shape();
    const Shape& values = gradient.values.shape();
    if (!indices.IsVector()) {
      return InvalidArgument("Input indices should be vector but received shape: ",
                             indices.ToString());
    }
    if (values.rank() == 0) return InvalidArgument("Values cannot be 0-dimensional.");
    if (values.dim(0) != indices.dim(0)) {
      return InvalidArgument("Expected ", indices.dim(0), " non-empty input values, got ",
                             values.dim(0));
    }
    const int64_t limit =
        options().shape.known_rank() && options().shape.rank() > 0 ? options().shape.dim(0) : -1;
    for (const int64_t row : gradient.indices.span<int64_t>()) {
      if (limit >= 0 && row >= limit) {
        return InvalidArgument(
            "Shape mismatch: index of slice 0 exceeded limits of shape; index is ", row,
            " exceeded ", limit);
      }
    }
    return absl::OkStatus();
  }

  Status CheckShapes(const AccumulatedGradient& gradient, int64_t count) const {
    const Shape& values = gradient.values.shape();
    const PartialShape& declared = options().shape;
    if (declared.known_rank() && declared.rank() > values.rank()) {
      return InvalidArgument("Shape mismatch: expected values rank at least ", declared.rank(),
                             ", got ", values.rank());
    }
    for (int d = 1; d < values.rank(); ++d) {
      int64_t expected = declared.known_rank() && d < declared.rank() ? declared.dim(d) : -1;
      if (count > 0 && d < values_.rank()) expected = values_.dim(d);
      if (expected >= 0 && values.dim(d) != expected) {
        return InvalidArgument("Shape mismatch: expected values dim ", d, " to be ", expected,
                               ", got ", values.dim(d));
      }
    }
    if (count > 0 && values.rank() != values_.rank()) {
      return InvalidArgument("Shape mismatch: expected values rank ", values_.rank(), ", got ",
                             values.rank());
    }
    if (!gradient.dense_shape.IsInitialized()) return absl::OkStatus();
    const absl::Span<const int64_t> shape = gradient.dense_shape.span<int64_t>();
    if (declared.known_rank() && static_cast<int64_t>(shape.size()) < declared.rank()) {
      return InvalidArgument("Shape mismatch: expected shape rank at least ", declared.rank(),
                             ", got ", shape.size());
    }
    for (int d = 0; declared.known_rank() && d < declared.rank(); ++d) {
      if (declared.dim(d) >= 0 && declared.dim(d) != shape[d]) {
        return InvalidArgument("Shape mismatch: expected shape dim ", d, " to be ", declared.dim(d),
                               ", got ", shape[d]);
      }
    }
    return absl::OkStatus();
  }

  Status Merge(absl::Span<const int64_t> rows, const Tensor& values) {
    std::vector<int64_t> merged_rows, merged_counts;
    std::vector<std::pair<int64_t, int64_t>> sources;  // row of values_, row of values; -1: none
    size_t i = 0, j = 0;
    while (i < rows_.size() || j < rows.size()) {
      const bool mine = j == rows.size() || (i < rows_.size() && rows_[i] <= rows[j]);
      const bool theirs = i == rows_.size() || (j < rows.size() && rows[j] <= rows_[i]);
      merged_rows.push_back(mine ? rows_[i] : rows[j]);
      merged_counts.push_back((mine ? counts_[i] : 0) + (theirs ? 1 : 0));
      sources.emplace_back(mine ? static_cast<int64_t>(i) : -1,
                           theirs ? static_cast<int64_t>(j) : -1);
      i += mine ? 1 : 0;
      j += theirs ? 1 : 0;
    }
    Shape shape = values.shape();
    shape.SetDim(0, static_cast<int64_t>(merged_rows.size()));
    WEFT_ASSIGN_OR_RETURN(Tensor merged, Tensor::Allocate(values.dtype(), shape));
    const int64_t row_size = RowSize(shape);
    int64_t at = 0;
    for (const auto& [mine, theirs] : sources) {
      CopyElements(mine >= 0 ? values_ : values, (mine >= 0 ? mine : theirs) * row_size, row_size,
                   &merged, at);
      if (mine >= 0 && theirs >= 0) {
        AddGradient(&merged, at, values, theirs * row_size, row_size);
      }
      at += row_size;
    }
    values_ = std::move(merged);
    rows_ = std::move(merged_rows);
    counts_ = std::move(merged_counts);
    return absl::OkStatus();
  }

  Tensor DenseShape() const {
    const PartialShape& declared = options().shape;
    std::vector<int64_t> dims(values_.shape().dims().begin(), values_.shape().dims().end());
    if (!dims.empty()) dims[0] = -1;
    for (int d = 0; declared.known_rank() && d < declared.rank(); ++d) {
      if (d >= static_cast<int>(dims.size())) dims.push_back(-1);
      if (declared.dim(d) >= 0) dims[d] = declared.dim(d);
    }
    return Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(dims.size())}, dims);
  }

  std::vector<int64_t> rows_;
  std::vector<int64_t> counts_;
  Tensor values_;
};

}  // namespace

Ref<Accumulator> MakeAccumulator(AccumulatorOptions options) {
  if (options.is_sparse) return MakeRef<SparseAccumulator>(std::move(options));
  return MakeRef<DenseAccumulator>(std::move(options));
}

}  // namespace weft::ops::state
