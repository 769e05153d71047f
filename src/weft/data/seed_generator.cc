// SPDX-License-Identifier: Apache-2.0
#include "weft/data/seed_generator.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace weft::data {

StatusOr<SeedSource> SeedSource::OfKernel(const KernelContext& c, bool reshuffles) {
  SeedSource source;
  source.reshuffles_ = reshuffles;
  if (const StatusOr<Tensor> handle = OneInput(c, "seed_generator"); handle.ok()) {
    if (handle->dtype() == DType::kResource && handle->num_elements() == 1) {
      auto* shared = dynamic_cast<SeedGenerator*>(handle->data<ResourceHandle>()->object.get());
      if (shared != nullptr) {
        absl::MutexLock lock(&source.state_->mutex);
        source.state_->generator = Ref<SeedGenerator>(shared);
        return source;
      }
    }
  }
  if (!InputsNamed(c, "seed").ok())
    return NotFound("Resource of the seed generator does not exist");
  WEFT_ASSIGN_OR_RETURN(source.seeds_, SeedsInput(c));
  return source;
}

Ref<SeedGenerator> SeedSource::For(const ContextPtr& context) const {
  absl::MutexLock lock(&state_->mutex);
  Ref<SeedGenerator>& generator = state_->generator;
  if (generator && state_->way == context->way()) return generator;
  state_->way = context->way();
  const bool has_seeds = seeds_.first != 0 || seeds_.second != 0;
  const Seeds current = generator ? generator->seeds() : has_seeds ? seeds_ : RandomSeeds();
  const uint64_t given = generator ? generator->given() : 0;
  const Seeds seeds = context->Keep(current);
  const uint64_t before = context->Keep({given, 0}).first;
  const bool is_current = generator && seeds.first == current.first &&
                          seeds.second == current.second && before == given;
  if (!is_current) {
    const bool reshuffles = generator ? generator->reshuffles() : reshuffles_;
    generator = MakeRef<SeedGenerator>(seeds, reshuffles, before);
  }
  return generator;
}

namespace seed_generator {
namespace {

// Outputs a handle, and for the forms with one a deleter, which nobody needs: the handle owns.
class GeneratorKernel final : public OpKernel {
 public:
  explicit GeneratorKernel(KernelConstruction& k)
      : always_(k.op() == "AnonymousRandomSeedGenerator") {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Seeds seeds, SeedsInput(c));
    bool reshuffles = true;
    if (!always_) {
      WEFT_ASSIGN_OR_RETURN(reshuffles, ScalarInput<bool>(c, "reshuffle"));
    }
    const ContextPtr context = IteratorContext::OfStep(c);
    static std::atomic<int64_t> next{0};
    c.SetOutput(0, Tensor::Scalar(ResourceHandle{
                       .device = c.device().name(),
                       .container = c.default_container(),
                       .name = absl::StrCat("_seed_generator_", next.fetch_add(1)),
                       .type_name = "SeedGenerator",
                       .object = MakeRef<SeedGenerator>(context->Resolve(seeds), reshuffles)}));
    c.SetOutput(1, Tensor::Scalar(Variant{}));
    return absl::OkStatus();
  }

 private:
  const bool always_;
};

class DummyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                                 .container = c.default_container(),
                                                 .name = "dummy",
                                                 .type_name = "dummy",
                                                 .object = nullptr}));
    return absl::OkStatus();
  }
};

class NothingKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("AnonymousSeedGenerator")
                    .Doc("A generator of seeds for datasets, as long as its handle is there.")
                    .Input("seed: int64")
                    .Input("seed2: int64")
                    .Input("reshuffle: bool")
                    .Output("handle: resource")
                    .Output("deleter: variant")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<GeneratorKernel>()));
  catalogue.Add(OpSpec("AnonymousRandomSeedGenerator")
                    .Doc("A generator of seeds for datasets, other ones each time, as long as its "
                         "handle is there.")
                    .Input("seed: int64")
                    .Input("seed2: int64")
                    .Output("handle: resource")
                    .Output("deleter: variant")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<GeneratorKernel>()));
  catalogue.Add(OpSpec("DummySeedGenerator")
                    .Doc("A handle of no generator: the dataset has its own.")
                    .Output("handle: resource")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<DummyKernel>()));
  catalogue.Add(OpSpec("DeleteSeedGenerator")
                    .Doc("Does nothing: the handle owns the generator.")
                    .Input("handle: resource")
                    .Input("deleter: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<NothingKernel>()));
  catalogue.Add(OpSpec("DeleteRandomSeedGenerator")
                    .Doc("Does nothing: the handle owns the generator.")
                    .Input("handle: resource")
                    .Input("deleter: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<NothingKernel>()));
  catalogue.Add(OpSpec("DummyMemoryCache")
                    .Doc("A handle of no cache: the dataset has its own.")
                    .Output("handle: resource")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<DummyKernel>()));
}

}  // namespace seed_generator
}  // namespace weft::data
