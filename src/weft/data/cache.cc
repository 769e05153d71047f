// SPDX-License-Identifier: Apache-2.0
// Elements that are made once and kept, in memory or in files.
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

#include "weft/data/transform.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::data::cache {
namespace {

// What was kept of one way to the end. Thread-safe.
class Memory final : public Resource {
 public:
  using Elements = std::shared_ptr<const std::vector<Element>>;
  Elements elements() const {
    absl::MutexLock lock(&mutex_);
    return elements_;
  }
  void Complete(std::vector<Element> elements) {
    absl::MutexLock lock(&mutex_);
    if (elements_ == nullptr) {
      elements_ = std::make_shared<const std::vector<Element>>(std::move(elements));
    }
  }
  std::string DebugString() const override { return "Memory cache"; }

 private:
  mutable absl::Mutex mutex_;
  Elements elements_ ABSL_GUARDED_BY(mutex_);
};

class InMemory final : public TransformDataset {
 public:
  InMemory(const DatasetRef& input, Ref<Memory> memory)
      : TransformDataset(input), memory_(std::move(memory)) {}
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    if (const Memory::Elements kept = memory_->elements(); kept != nullptr) {
      if (index < 0 || index >= static_cast<int64_t>(kept->size())) {
        return OutOfRange("Index out of range [0, ", kept->size(), "):", index);
      }
      return (*kept)[static_cast<size_t>(index)];
    }
    return input()->At(context, index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<InMemory> {
   public:
    Iterator(const InMemory* dataset, ContextPtr context)
        : TransformIterator(dataset, std::move(context)), kept_(dataset->memory_->elements()) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context()->Check());
      if (kept_ != nullptr) {
        if (next_ == kept_->size()) return false;
        *element = (*kept_)[next_++];
        return true;
      }
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
      if (found) {
        made_.push_back(*element);
        return true;
      }
      dataset().memory_->Complete(std::move(made_));
      kept_ = dataset().memory_->elements();
      next_ = kept_->size();
      return false;
    }

   private:
    Memory::Elements kept_;
    size_t next_ = 0;
    std::vector<Element> made_;
  };

  const Ref<Memory> memory_;
};

// A bundle of tensors named by element and component. Only who came to the end writes its index.
class InFiles final : public TransformDataset {
 public:
  InFiles(const DatasetRef& input, std::string prefix)
      : TransformDataset(input), prefix_(std::move(prefix)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context->files());
    if (files->Stat(prefix_ + ".index").ok()) {
      WEFT_ASSIGN_OR_RETURN(auto reader, storage::BundleReader::Open(*files, prefix_));
      return std::make_unique<Reading>(std::move(reader), spec().types.size(), context);
    }
    return Started<Writing>(this, context);
  }

 private:
  static std::string KeyOf(size_t element, size_t component) {
    return absl::StrCat(element, "_", component);
  }

  class Reading final : public DatasetIterator {
   public:
    Reading(std::unique_ptr<storage::BundleReader> reader, size_t width, ContextPtr context)
        : reader_(std::move(reader)), width_(width), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      WEFT_ASSIGN_OR_RETURN(const bool is_there, reader_->Contains(KeyOf(next_, 0)));
      if (!is_there) return false;
      element->clear();
      for (size_t i = 0; i < width_; ++i) {
        WEFT_ASSIGN_OR_RETURN(element->emplace_back(), reader_->Read(KeyOf(next_, i)));
      }
      ++next_;
      return true;
    }

   private:
    const std::unique_ptr<storage::BundleReader> reader_;
    const size_t width_;
    const ContextPtr context_;
    size_t next_ = 0;
  };

  class Writing final : public TransformIterator<InFiles> {
   public:
    using TransformIterator::TransformIterator;
    ~Writing() override {
      writer_.reset();
      if (has_lock_) (void)files_->Delete(LockPath());
    }
    StatusOr<bool> Next(Element* element) override {
      if (is_over_) return false;
      if (writer_ == nullptr) WEFT_RETURN_IF_ERROR(Begin());
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
      if (found) {
        for (size_t i = 0; i < element->size(); ++i) {
          WEFT_RETURN_IF_ERROR(writer_->Add(KeyOf(next_, i), (*element)[i]));
        }
        ++next_;
        return true;
      }
      is_over_ = true;
      WEFT_RETURN_IF_ERROR(writer_->Finish());
      has_lock_ = false;
      (void)files_->Delete(LockPath());
      return false;
    }

   private:
    std::string LockPath() const { return dataset().prefix_ + ".lockfile"; }
    Status Begin() {
      WEFT_ASSIGN_OR_RETURN(files_, context()->files());
      if (files_->Stat(LockPath()).ok()) {
        return AlreadyExists(
            "There appears to be a concurrent caching iterator running - cache lockfile already "
            "exists ('",
            LockPath(),
            "'). If you are sure no other running TF computations are "
            "using this cache prefix, delete the lockfile and re-initialize the iterator.");
      }
      WEFT_RETURN_IF_ERROR(files_->MakeDirectories(ParentPath(dataset().prefix_)));
      WEFT_RETURN_IF_ERROR(WriteFile(*files_, LockPath(), "Created by a cache of a dataset"));
      has_lock_ = true;
      WEFT_ASSIGN_OR_RETURN(writer_, storage::BundleWriter::Create(*files_, dataset().prefix_));
      return absl::OkStatus();
    }

    FileSystem* files_ = nullptr;
    std::unique_ptr<storage::BundleWriter> writer_;
    size_t next_ = 0;
    bool has_lock_ = false;
    bool is_over_ = false;
  };

  const std::string prefix_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(std::string name, ScalarInput<std::string>(c, "filename"));
  if (!name.empty()) return DatasetRef(MakeRef<InFiles>(input, std::move(name)));
  Ref<Memory> memory;
  if (const StatusOr<Tensor> handle = OneInput(c, "cache");
      handle.ok() && handle->dtype() == DType::kResource && handle->num_elements() == 1) {
    memory = Ref<Memory>(dynamic_cast<Memory*>(handle->data<ResourceHandle>()->object.get()));
  }
  if (!memory) memory = MakeRef<Memory>();
  return DatasetRef(MakeRef<InMemory>(input, std::move(memory)));
}

class AnonymousKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    static std::atomic<int64_t> next{0};
    c.SetOutput(
        0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                         .container = c.default_container(),
                                         .name = absl::StrCat("_memory_cache_", next.fetch_add(1)),
                                         .type_name = "MemoryCache",
                                         .object = MakeRef<Memory>()}));
    c.SetOutput(1, Tensor::Scalar(Variant{}));
    return absl::OkStatus();
  }
};

class NothingKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "CacheDataset",
                         .doc = "The dataset itself, whose elements are made once: kept in memory, "
                                "or in files that begin with `filename`.",
                         .inputs = {"input_dataset: variant", "filename: string"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = Make});
  AddDataset(catalogue,
             {.name = "CacheDatasetV2",
              .doc = "The dataset itself, whose elements are made once: kept in memory, by `cache` "
                     "if its handle leads to one, or in files that begin with `filename`.",
              .inputs = {"input_dataset: variant", "filename: string", "cache: resource"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "metadata: string = ''"},
              .is_stateful = true,
              .make = Make});
  catalogue.Add(OpSpec("AnonymousMemoryCache")
                    .Doc("A cache for datasets, as long as its handle is there.")
                    .Output("handle: resource")
                    .Output("deleter: variant")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AnonymousKernel>()));
  catalogue.Add(OpSpec("DeleteMemoryCache")
                    .Doc("Does nothing: the handle owns the cache.")
                    .Input("handle: resource")
                    .Input("deleter: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<NothingKernel>()));
}

}  // namespace weft::data::cache
