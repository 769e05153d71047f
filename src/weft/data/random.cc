// SPDX-License-Identifier: Apache-2.0
// Random numbers as a dataset, and a random part of one, in TensorFlow's order for its seeds.
#include <bit>
#include <utility>

#include "weft/data/seed_generator.h"
#include "weft/data/transform.h"

namespace weft::data::random {
namespace {

class Random final : public Dataset {
 public:
  explicit Random(SeedSource seeds)
      : Dataset({{DType::kInt64}, {PartialShape(Shape())}}), seeds_(std::move(seeds)) {}
  int64_t Cardinality() const override { return kInfinite; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(seeds_.For(context)->Next(), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(const Seeds& seeds, ContextPtr context)
        : words_(seeds), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      *element = {Tensor::Scalar(int64_t{words_.Next()})};
      return true;
    }

   private:
    RandomWords words_;
    const ContextPtr context_;
  };

  const SeedSource seeds_;
};

class Sampling final : public TransformDataset {
 public:
  Sampling(const DatasetRef& input, float rate, const Seeds& seeds)
      : TransformDataset(input), rate_(rate), seeds_(seeds) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Sampling> {
   public:
    Iterator(const Sampling* dataset, ContextPtr context)
        : TransformIterator(dataset, std::move(context)),
          words_(this->context()->Resolve(dataset->seeds_)) {}
    StatusOr<bool> Next(Element* element) override {
      while (true) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) return false;
        // [0, 1): the word's low bits are the mantissa.
        const uint32_t mantissa = words_.Next() & 0x7fffffu;
        if (std::bit_cast<float>(uint32_t{127} << 23 | mantissa) - 1.0f < dataset().rate_) {
          return true;
        }
      }
    }

   private:
    RandomWords words_;
  };

  const float rate_;
  const Seeds seeds_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  const bool again = FindAttrOr<bool>(c.call().attrs(), "rerandomize_each_iteration", false);
  WEFT_ASSIGN_OR_RETURN(SeedSource seeds, SeedSource::OfKernel(c, again));
  return DatasetRef(MakeRef<Random>(std::move(seeds)));
}

StatusOr<DatasetRef> MakeSampling(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const float rate, ScalarInput<float>(c, "rate"));
  WEFT_ASSIGN_OR_RETURN(const Seeds seeds, SeedsInput(c));
  return DatasetRef(MakeRef<Sampling>(input, rate, seeds));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "RandomDataset",
                         .doc = "A dataset of random numbers below 2^32, without end.",
                         .inputs = {"seed: int64", "seed2: int64"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .is_stateful = true,
                         .make = Make});
  AddDataset(catalogue,
             {.name = "RandomDatasetV2",
              .doc = "A dataset of random numbers below 2^32, without end; others in each "
                     "iteration on demand.",
              .inputs = {"seed: int64", "seed2: int64", "seed_generator: resource"},
              .attrs = {"rerandomize_each_iteration: bool = false", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .is_stateful = true,
              .make = Make});
  AddDataset(catalogue,
             {.name = "ExperimentalRandomDataset",
              .doc = "RandomDataset under its first name.",
              .inputs = {"seed: int64", "seed2: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .is_stateful = true,
              .make = Make});
  AddDataset(catalogue,
             {.name = "SamplingDataset",
              .doc = "A dataset of a random part of the elements: each with probability `rate`.",
              .inputs = {"input_dataset: variant", "rate: float", "seed: int64", "seed2: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = MakeSampling});
}

}  // namespace weft::data::random
