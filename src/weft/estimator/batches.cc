// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/batches.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace weft::estimator {

StatusOr<int64_t> CountExamples(const Examples& examples) {
  int64_t count = -1;
  const auto check = [&](const Tensor& tensor, const char* what) -> Status {
    if (!tensor.IsInitialized() || tensor.rank() < 1) {
      return InvalidArgument(what, " must have an axis of examples");
    }
    if (count < 0) count = tensor.dim(0);
    if (tensor.dim(0) == count) return absl::OkStatus();
    return InvalidArgument(what, " holds ", tensor.dim(0), " examples, the first tensor ", count);
  };
  for (const Tensor& x : examples.x) WEFT_RETURN_IF_ERROR(check(x, "x"));
  for (const Tensor& y : examples.y) WEFT_RETURN_IF_ERROR(check(y, "y"));
  if (examples.sample_weight.IsInitialized()) {
    WEFT_RETURN_IF_ERROR(check(examples.sample_weight, "sample_weight"));
  }
  if (count < 0) return InvalidArgument("There are no examples");
  return count;
}

Status AppendRows(const Tensor& part, int64_t begin, int64_t count, Tensor* whole) {
  if (part.rank() < 1) return InvalidArgument("An output has no axis of examples");
  if (!whole->IsInitialized()) {
    Shape shape = part.shape();
    shape.SetDim(0, count);
    WEFT_ASSIGN_OR_RETURN(*whole, Tensor::Allocate(part.dtype(), shape));
  }
  Shape rows = whole->shape();
  rows.SetDim(0, part.dim(0));
  if (part.shape() != rows || begin + part.dim(0) > count || part.dtype() != whole->dtype()) {
    return InvalidArgument("An output has shape ", part.shape().ToString(), " for one batch, and ",
                           rows.ToString(), " before");
  }
  Tensor place = whole->SliceRows(begin, begin + part.dim(0));
  place.CopyFrom(part);
  return absl::OkStatus();
}

ExampleBatches::ExampleBatches(Examples examples, const Options& options, int64_t count)
    : examples_(std::move(examples)),
      options_(options),
      count_(count),
      random_(options.seed != 0 ? static_cast<uint64_t>(options.seed) : std::random_device()()) {}

StatusOr<ExampleBatches> ExampleBatches::Make(Examples examples, const Options& options) {
  if (options.batch_size < 1) {
    return InvalidArgument("batch_size is ", options.batch_size, ", expected at least 1");
  }
  WEFT_ASSIGN_OR_RETURN(const int64_t count, CountExamples(examples));
  return ExampleBatches(std::move(examples), options, count);
}

Status ExampleBatches::BeginEpoch() {
  next_ = 0;
  if (!options_.shuffle) return absl::OkStatus();
  order_.resize(static_cast<size_t>(count_));
  std::iota(order_.begin(), order_.end(), 0);
  std::shuffle(order_.begin(), order_.end(), random_);
  return absl::OkStatus();
}

StatusOr<Tensor> ExampleBatches::Rows(const Tensor& of, int64_t begin, int64_t end) const {
  if (!options_.shuffle) return of.SliceRows(begin, end);
  Shape shape = of.shape();
  shape.SetDim(0, end - begin);
  WEFT_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(of.dtype(), shape));
  const int64_t elements = of.dim(0) == 0 ? 0 : of.num_elements() / of.dim(0);
  if (of.dtype() == DType::kString) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(of.data<std::string>() + order_[i] * elements, elements,
                  rows.data<std::string>() + (i - begin) * elements);
    }
    return rows;
  }
  const size_t bytes = static_cast<size_t>(elements) * DTypeSize(of.dtype());
  for (int64_t i = begin; i < end; ++i) {
    std::memcpy(rows.bytes() + static_cast<size_t>(i - begin) * bytes,
                of.bytes() + static_cast<size_t>(order_[i]) * bytes, bytes);
  }
  return rows;
}

StatusOr<bool> ExampleBatches::Next(Batch* batch) {
  if (next_ >= count_) return false;
  const int64_t end = std::min(next_ + options_.batch_size, count_);
  *batch = Batch();
  for (const auto& [from, to] :
       {std::pair(&examples_.x, &batch->x), std::pair(&examples_.y, &batch->y)}) {
    for (const Tensor& tensor : *from) {
      WEFT_ASSIGN_OR_RETURN(Tensor rows, Rows(tensor, next_, end));
      to->push_back(std::move(rows));
    }
  }
  if (examples_.sample_weight.IsInitialized()) {
    WEFT_ASSIGN_OR_RETURN(batch->sample_weight, Rows(examples_.sample_weight, next_, end));
  }
  next_ = end;
  return true;
}

}  // namespace weft::estimator
