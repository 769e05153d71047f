// SPDX-License-Identifier: Apache-2.0
// Staging areas as ops: one step's tuples for a later one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/staging_area_kernel.h"

namespace weft::ops::state::stage {
namespace {

// What every node of an area says; the first to run makes it.
class Area {
 public:
  explicit Area(const KernelConstruction& c)
      : resource_(c),
        capacity_(c.AttrOr<int64_t>("capacity", 0)),
        memory_limit_(c.AttrOr<int64_t>("memory_limit", 0)) {}

  StatusOr<Ref<StagingArea>> Get(const KernelContext& c) {
    return resource_.Get(c, [&]() -> StatusOr<Ref<StagingArea>> {
      return MakeRef<StagingArea>(resource_.name(), capacity_, memory_limit_);
    });
  }

 private:
  NamedResource<StagingArea> resource_;
  const int64_t capacity_;
  const int64_t memory_limit_;
};

Status Give(KernelContext& c, StatusOr<StagingArea::Tuple> tuple) {
  WEFT_RETURN_IF_ERROR(tuple.status());
  if (static_cast<int>(tuple->size()) != c.num_outputs()) {
    return InvalidArgument("Mismatch stage/unstage: ", tuple->size(), " vs. ", c.num_outputs());
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    Tensor& tensor = (*tuple)[static_cast<size_t>(i)];
    if (tensor.dtype() != c.call().output_type(i).dtype) {
      return InvalidArgument("Mismatch stage/unstage: component ", i, " is ",
                             DTypeName(tensor.dtype()), ", expected ",
                             DTypeName(c.call().output_type(i).dtype));
    }
    c.SetOutput(i, std::move(tensor));
  }
  return absl::OkStatus();
}

enum class Use { kPut, kGet, kPeek };

template <Use use>
class TransferKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<TransferKernel>(c);
  }
  explicit TransferKernel(const KernelConstruction& c) : area_(c) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<StagingArea>> area = area_.Get(c);
    if (!area.ok()) return done(area.status());
    if constexpr (use == Use::kPut) {
      StagingArea::Tuple tuple;
      for (int i = 0; i < c.num_inputs(); ++i) tuple.push_back(c.input(i));
      (*area)->Put(Caller::Of(c), std::move(tuple),
                   [done = std::move(done)](StatusOr<StagingArea::Tuple> result) mutable {
                     done(result.status());
                   });
    } else {
      auto give = [&c, done = std::move(done)](StatusOr<StagingArea::Tuple> tuple) mutable {
        done(Give(c, std::move(tuple)));
      };
      if constexpr (use == Use::kGet) return (*area)->Get(Caller::Of(c), std::move(give));
      if (!c.input(0).shape().IsScalar()) {
        return give(
            InvalidArgument("index must be scalar, got shape ", c.input(0).shape().ToString()));
      }
      (*area)->Peek(Caller::Of(c), c.input(0).scalar<int32_t>(), std::move(give));
    }
  }

 private:
  Area area_;
};

class SizeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<SizeKernel>(c);
  }
  explicit SizeKernel(const KernelConstruction& c) : area_(c) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<StagingArea> area, area_.Get(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int32_t>() = static_cast<int32_t>(area->size());
    return absl::OkStatus();
  }

 private:
  Area area_;
};

class ClearKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<ClearKernel>(c);
  }
  explicit ClearKernel(const KernelConstruction& c) : area_(c) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<StagingArea> area, area_.Get(c));
    area->Clear();
    return absl::OkStatus();
  }

 private:
  Area area_;
};

// The attributes that all nodes of an area share.
OpSpec& WithArea(OpSpec& spec, const char* dtypes) {
  return spec.Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr(dtypes)
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Stateful()
      .NoGradient();
}

}  // namespace

void Register(Catalogue& catalogue) {
  const auto add = [&](OpSpec& spec) { catalogue.Add(std::move(spec)); };
  add(WithArea(OpSpec("Stage")
                   .Doc("Puts a tuple into the staging area of this container and shared name; "
                        "waits while it "
                        "holds `capacity` tuples or more than `memory_limit` bytes (0: no limit).")
                   .Input("values: dtypes"),
               "dtypes: list(type) >= 1")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<TransferKernel<Use::kPut>>(), KernelCost::kInline));
  add(WithArea(OpSpec("Unstage")
                   .Doc("Takes the first tuple out of the staging area; waits while it is empty.\n"
                        "InvalidArgument if the tuple has other components.")
                   .Output("values: dtypes"),
               "dtypes: list(type) >= 1")
          .Shape(shapes::Unknown)
          .Kernel(MakeKernel<TransferKernel<Use::kGet>>(), KernelCost::kInline));
  add(WithArea(OpSpec("StagePeek")
                   .Doc("The tuple at an index of the staging area, which stays; waits until there "
                        "is one.")
                   .Input("index: int32")
                   .HostInput("index")
                   .Output("values: dtypes"),
               "dtypes: list(type) >= 1")
          .Shape(shapes::Unknown)
          .Kernel(MakeKernel<TransferKernel<Use::kPeek>>(), KernelCost::kInline));
  add(WithArea(OpSpec("StageSize")
                   .Doc("How many tuples the staging area holds.")
                   .Output("size: int32")
                   .HostOutput("size"),
               "dtypes: list(type)")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline));
  add(WithArea(OpSpec("StageClear").Doc("Empties the staging area."), "dtypes: list(type)")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<ClearKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::stage
