// SPDX-License-Identifier: Apache-2.0
// Iterators by their handles: made, begun, asked for elements.
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/data/iterator_op.h"
#include "weft/data/optional_value.h"

namespace weft::data::iterators {
namespace {

Tensor HandleOf(const KernelContext& c, const std::string& container, const std::string& name,
                const char* type, Ref<RefCounted> object) {
  return Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                       .container = container,
                                       .name = name,
                                       .type_name = type,
                                       .object = std::move(object)});
}

// The iterator of one node: by its shared name, else of nobody but the kernel, with which it goes.
class OwnIterator {
 public:
  explicit OwnIterator(const KernelConstruction& k, int num_shards = 1)
      : num_shards_(num_shards),
        container_(k.AttrOr<std::string>("container", "")),
        name_(k.AttrOr<std::string>("shared_name", "")) {
    if (!name_.empty()) return;
    static std::atomic<int64_t> next{0};
    name_ = absl::StrCat("_", next.fetch_add(1), "_", k.name());
    is_private_ = true;
  }
  ~OwnIterator() {
    if (private_) ForgetPrivateIterator(name_);
    if (private_) private_->Close();
  }

  StatusOr<Ref<IteratorResource>> Get(const KernelContext& c, const ElementSpec& spec) {
    absl::MutexLock lock(&mutex_);
    if (container_.empty()) container_ = c.default_container();
    if (is_private_) {
      if (!private_) {
        private_ = MakeRef<IteratorResource>(name_, spec, num_shards_);
        RememberPrivateIterator(name_, private_);
      }
      return private_;
    }
    WEFT_ASSIGN_OR_RETURN(Ref<IteratorResource> found,
                          c.resources().LookupOrCreate<IteratorResource>(
                              container_, name_, [&]() -> StatusOr<Ref<IteratorResource>> {
                                return MakeRef<IteratorResource>(name_, spec, num_shards_);
                              }));
    WEFT_RETURN_IF_ERROR(CheckSpec(found->spec(), spec));
    return found;
  }
  Tensor Handle(const KernelContext& c, const Ref<IteratorResource>& iterator) const {
    return HandleOf(c, container_, name_, "tensorflow::data::IteratorResource", iterator);
  }

 private:
  const int num_shards_;
  absl::Mutex mutex_;
  std::string container_;
  std::string name_;
  bool is_private_ = false;
  Ref<IteratorResource> private_;
};

class IteratorKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    WEFT_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfAttrs(k));
    const auto devices = k.AttrOr<AttrValue::StringList>("devices", {});
    const bool is_multi = k.op() == "MultiDeviceIterator";
    if (is_multi && devices.empty()) {
      return InvalidArgument("`devices` must name at least one device");
    }
    return std::make_unique<IteratorKernel>(k, std::move(spec),
                                            is_multi ? static_cast<int>(devices.size()) : 1);
  }
  IteratorKernel(const KernelConstruction& k, ElementSpec spec, int num_shards)
      : own_(k, num_shards), spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, own_.Get(c, spec_));
    c.SetOutput(0, own_.Handle(c, iterator));
    return absl::OkStatus();
  }

 private:
  OwnIterator own_;
  const ElementSpec spec_;
};

// What a handle of an iterator of nobody else holds: as long as it lives the iterator is found by
// its name, also by handles that have been strings or have come over the wire.
class HeldIterator final : public RefCounted {
 public:
  HeldIterator(std::string name, Ref<IteratorResource> iterator) : name_(std::move(name)) {
    RememberPrivateIterator(name_, std::move(iterator));
  }
  ~HeldIterator() override { ForgetPrivateIterator(name_); }

 private:
  const std::string name_;
};

// Another iterator each time, which goes with the last handle.
class AnonymousKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    WEFT_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfAttrs(k));
    const auto devices = k.AttrOr<AttrValue::StringList>("devices", {});
    return std::make_unique<AnonymousKernel>(std::move(spec),
                                             std::max<int>(1, static_cast<int>(devices.size())));
  }
  AnonymousKernel(ElementSpec spec, int num_shards)
      : spec_(std::move(spec)), num_shards_(num_shards) {}

  Status Compute(KernelContext& c) override {
    static std::atomic<int64_t> next{0};
    const std::string name = absl::StrCat("_AnonymousIterator", next.fetch_add(1));
    c.SetOutput(0, HandleOf(c, c.default_container(), name, "tensorflow::data::IteratorResource",
                            MakeRef<HeldIterator>(
                                name, MakeRef<IteratorResource>(name, spec_, num_shards_))));
    if (c.num_outputs() > 1) c.SetOutput(1, Tensor::Scalar(Variant{}));
    return absl::OkStatus();
  }

 private:
  const ElementSpec spec_;
  const int num_shards_;
};

// The dataset comes from a function, which is called once.
class OneShotKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    WEFT_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfAttrs(k));
    WEFT_ASSIGN_OR_RETURN(FunctionRef factory, k.Attr<FunctionRef>("dataset_factory"));
    return std::make_unique<OneShotKernel>(k, std::move(spec), std::move(factory));
  }
  OneShotKernel(const KernelConstruction& k, ElementSpec spec, FunctionRef factory)
      : own_(k), spec_(std::move(spec)), factory_(std::move(factory)) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<IteratorResource>> iterator = own_.Get(c, spec_);
    if (!iterator.ok()) return done(iterator.status());
    if ((*iterator)->has_begun()) {
      c.SetOutput(0, own_.Handle(c, *iterator));
      return done(absl::OkStatus());
    }
    if (c.environment().functions == nullptr) {
      return done(FailedPrecondition("OneShotIterator cannot be called where there is no graph"));
    }
    c.environment().functions->Run(factory_, {}, &c.cancellation(),
                                   [this, &c, iterator = *iterator, done = std::move(done)](
                                       StatusOr<std::vector<Tensor>> results) mutable {
                                     Status status = results.status();
                                     if (status.ok()) status = Begin(c, *iterator, *results);
                                     if (status.ok()) c.SetOutput(0, own_.Handle(c, iterator));
                                     done(std::move(status));
                                   });
  }

 private:
  // One of the steps that come at the same time begins.
  Status Begin(const KernelContext& c, IteratorResource& iterator,
               const std::vector<Tensor>& results) {
    if (results.size() != 1) {
      return InvalidArgument("The `dataset_factory` function must return exactly one tensor.");
    }
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(results[0]));
    absl::MutexLock lock(&mutex_);
    if (iterator.has_begun()) return absl::OkStatus();
    return iterator.Begin(c, dataset).status();
  }

  OwnIterator own_;
  const ElementSpec spec_;
  const FunctionRef factory_;
  absl::Mutex mutex_;
};

class BeginKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, IteratorOf(c, 1));
    return iterator->Begin(c, dataset).status();
  }
};

class MultiInitKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, IteratorOf(c, 1));
    WEFT_ASSIGN_OR_RETURN(const int64_t ahead, ScalarInput<int64_t>(c, "max_buffer_size"));
    WEFT_ASSIGN_OR_RETURN(const int64_t incarnation, iterator->Begin(c, dataset, ahead));
    c.SetOutput(0, Tensor::Scalar(incarnation));
    return absl::OkStatus();
  }
};

enum class Gives { kElement, kOptional };

template <Gives gives>
class NextKernel final : public AsyncOpKernel {
 public:
  explicit NextKernel(KernelConstruction& k)
      : is_sharded_(k.num_inputs() == 3),
        shapes_(k.AttrOr<AttrValue::ShapeList>("output_shapes", {})) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<IteratorResource>> iterator = IteratorOf(c, 0);
    if (!iterator.ok()) return done(iterator.status());
    int32_t shard = 0;
    int64_t incarnation = 0;
    if (is_sharded_) {
      const StatusOr<int32_t> asked = ScalarInput<int32_t>(c, "shard_num");
      const StatusOr<int64_t> of = ScalarInput<int64_t>(c, "incarnation_id");
      if (!asked.ok()) return done(asked.status());
      if (!of.ok()) return done(of.status());
      shard = *asked;
      incarnation = *of;
    }
    (*iterator)->Next(c, shard, incarnation,
                      [this, &c, done = std::move(done)](StatusOr<NextElement> next) mutable {
                        done(Give(c, std::move(next)));
                      });
  }

 private:
  Status Give(KernelContext& c, StatusOr<NextElement> next) const {
    WEFT_RETURN_IF_ERROR(next.status());
    if constexpr (gives == Gives::kOptional) {
      c.SetOutput(0, Tensor::Scalar(
                         Variant{MakeRef<OptionalValue>(!next->is_end, std::move(next->element))}));
      return absl::OkStatus();
    }
    if (next->is_end) return OutOfRange("End of sequence");
    const Element& element = next->element;
    if (static_cast<int>(element.size()) != c.num_outputs()) {
      return InvalidArgument("The element has ", element.size(), " components, expected ",
                             c.num_outputs());
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& component = element[static_cast<size_t>(i)];
      if (component.dtype() != c.output_dtype(i)) {
        return InvalidArgument("Data type mismatch at component ", i, ": expected ",
                               DTypeName(c.output_dtype(i)), " but got ",
                               DTypeName(component.dtype()), ".");
      }
      if (static_cast<size_t>(i) < shapes_.size() &&
          !shapes_[static_cast<size_t>(i)].IsCompatibleWith(component.shape())) {
        return InvalidArgument("Incompatible shapes at component ", i, ": expected ",
                               shapes_[static_cast<size_t>(i)].ToString(), " but got ",
                               component.shape().ToString(), ".");
      }
      c.SetOutput(i, component);
    }
    return absl::OkStatus();
  }

  const bool is_sharded_;
  const AttrValue::ShapeList shapes_;
};

// The iterator ends now, whoever still has its handle.
class DeleteKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, IteratorOf(c, 0));
    iterator->Close();
    return absl::OkStatus();
  }
};

Status NextShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

void RegisterHandles(Catalogue& catalogue) {
  for (const char* name : {"Iterator", "IteratorV2"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("An iterator of a dataset that MakeIterator gives it.")
                      .Output("handle: resource")
                      .Attr("shared_name: string")
                      .Attr("container: string")
                      .Attr("output_types: list(type) >= 1")
                      .Attr("output_shapes: list(shape) >= 1")
                      .Stateful()
                      .Shape(shapes::Scalar)
                      .NoGradient()
                      .Kernel(MakeKernel<IteratorKernel>()));
  }
  catalogue.Add(OpSpec("OneShotIterator")
                    .Doc("An iterator of the dataset that `dataset_factory` makes, once.")
                    .Output("handle: resource")
                    .Attr("dataset_factory: func")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<OneShotKernel>()));
  catalogue.Add(OpSpec("MakeIterator")
                    .Doc("Lets `iterator` give the elements of `dataset`, from the first on.")
                    .Input("dataset: variant")
                    .Input("iterator: resource")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<BeginKernel>()));
  catalogue.Add(OpSpec("DeleteIterator")
                    .Doc("Ends the iterator.")
                    .Input("handle: resource")
                    .Input("deleter: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<DeleteKernel>()));
}

void RegisterAnonymous(Catalogue& catalogue) {
  for (const char* name : {"AnonymousIterator", "AnonymousIteratorV3"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("An iterator that goes with its handle.")
                      .Output("handle: resource")
                      .Attr("output_types: list(type) >= 1")
                      .Attr("output_shapes: list(shape) >= 1")
                      .Stateful()
                      .Shape(shapes::Scalar)
                      .NoGradient()
                      .Kernel(MakeKernel<AnonymousKernel>()));
  }
  catalogue.Add(OpSpec("AnonymousIteratorV2")
                    .Doc("An iterator that goes with its handle.")
                    .Output("handle: resource")
                    .Output("deleter: variant")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AnonymousKernel>()));
}

void RegisterElements(Catalogue& catalogue) {
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("The next element. OutOfRange when there is none left.")
                      .Input("iterator: resource")
                      .Output("components: output_types")
                      .Attr("output_types: list(type) >= 1")
                      .Attr("output_shapes: list(shape) >= 1")
                      .Stateful()
                      .Shape(NextShape)
                      .NoGradient()
                      .Kernel(MakeKernel<NextKernel<Gives::kElement>>()));
  }
  catalogue.Add(
      OpSpec("IteratorGetNextAsOptional")
          .Doc("The next element as an optional, which holds nothing when there is none left.")
          .Input("iterator: resource")
          .Output("optional: variant")
          .Attr("output_types: list(type) >= 1")
          .Attr("output_shapes: list(shape) >= 1")
          .Stateful()
          .Shape(shapes::Scalar)
          .NoGradient()
          .Kernel(MakeKernel<NextKernel<Gives::kOptional>>()));
}

void RegisterMultiDevice(Catalogue& catalogue) {
  catalogue.Add(OpSpec("MultiDeviceIterator")
                    .Doc("An iterator that deals the elements out to several devices in turn.")
                    .Output("handle: resource")
                    .Attr("devices: list(string) >= 1")
                    .Attr("shared_name: string")
                    .Attr("container: string")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<IteratorKernel>()));
  catalogue.Add(OpSpec("MultiDeviceIteratorInit")
                    .Doc("Lets the iterator give the elements of `dataset`; the number says which "
                         "beginning it was.")
                    .Input("dataset: variant")
                    .Input("multi_device_iterator: resource")
                    .Input("max_buffer_size: int64")
                    .Output("incarnation_id: int64")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<MultiInitKernel>()));
  catalogue.Add(OpSpec("MultiDeviceIteratorGetNextFromShard")
                    .Doc("The next element of one device. OutOfRange when there is none left.")
                    .Input("multi_device_iterator: resource")
                    .Input("shard_num: int32")
                    .Input("incarnation_id: int64")
                    .Output("components: output_types")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Stateful()
                    .Shape(NextShape)
                    .NoGradient()
                    .Kernel(MakeKernel<NextKernel<Gives::kElement>>()));
}

void RegisterAnonymousMultiDevice(Catalogue& catalogue) {
  catalogue.Add(OpSpec("AnonymousMultiDeviceIterator")
                    .Doc("A MultiDeviceIterator that goes with its handle.")
                    .Output("handle: resource")
                    .Output("deleter: variant")
                    .Attr("devices: list(string) >= 1")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AnonymousKernel>()));
  catalogue.Add(OpSpec("AnonymousMultiDeviceIteratorV3")
                    .Doc("A MultiDeviceIterator that goes with its handle.")
                    .Output("handle: resource")
                    .Attr("devices: list(string) >= 1")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AnonymousKernel>()));
  catalogue.Add(OpSpec("DeleteMultiDeviceIterator")
                    .Doc("Ends the iterator.")
                    .Input("multi_device_iterator: resource")
                    .Input("iterators: N * resource")
                    .Input("deleter: variant")
                    .Attr("N: int >= 0")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<DeleteKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterHandles(catalogue);
  RegisterAnonymous(catalogue);
  RegisterElements(catalogue);
  RegisterMultiDevice(catalogue);
  RegisterAnonymousMultiDevice(catalogue);
}

}  // namespace weft::data::iterators
