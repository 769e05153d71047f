// SPDX-License-Identifier: Apache-2.0
// Examples, and the batches that they come in.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::estimator {

// Some examples: a tensor for each input and for each output of a model, examples along axis 0.
struct Examples {
  std::vector<Tensor> x;
  std::vector<Tensor> y = {};  // none for predictions
  Tensor sample_weight = {};   // float [examples], or not there: all count the same
};
using Batch = Examples;

// How many examples there are; InvalidArgument where the tensors do not agree.
StatusOr<int64_t> CountExamples(const Examples& examples);

// Copies `part` to the rows of `whole` from `begin` on; `whole` is made, of `count` rows, by the
// first part.
Status AppendRows(const Tensor& part, int64_t begin, int64_t count, Tensor* whole);

// Gives batches, epoch after epoch. Not thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Status BeginEpoch() = 0;
  // False when the epoch is over.
  virtual StatusOr<bool> Next(Batch* batch) = 0;
};

// Batches of tensors in memory: in their order, or in another one each epoch. Borrows nothing:
// tensors share their bytes.
class ExampleBatches final : public BatchSource {
 public:
  struct Options {
    int64_t batch_size = 32;
    bool shuffle = false;
    int64_t seed = 0;
  };
  static StatusOr<ExampleBatches> Make(Examples examples, const Options& options);
  Status BeginEpoch() override;
  StatusOr<bool> Next(Batch* batch) override;
  int64_t num_batches() const { return (count_ + options_.batch_size - 1) / options_.batch_size; }

 private:
  ExampleBatches(Examples examples, const Options& options, int64_t count);
  StatusOr<Tensor> Rows(const Tensor& of, int64_t begin, int64_t end) const;

  Examples examples_;
  Options options_;
  int64_t count_ = 0, next_ = 0;
  std::vector<int64_t> order_;
  std::mt19937_64 random_;
};

}  // namespace weft::estimator
