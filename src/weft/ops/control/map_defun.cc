// SPDX-License-Identifier: Apache-2.0
// MapDefun: a function called for each row of its arguments.
#include <algorithm>
#include <atomic>
#include <memory>

#include "base/ref.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"

namespace weft::ops::control::map_defun {
namespace {

// The calls of one step, one after another. A call that ends before it returns goes on in the same
// loop, one that ends elsewhere goes on there: the stack stays flat.
class Rows final : public RefCounted {
 public:
  Rows(KernelContext* context, const FunctionRef* function, int num_mapped, int64_t num_rows,
       OpKernel::Done done)
      : context_(*context),
        function_(*function),
        num_mapped_(num_mapped),
        num_rows_(num_rows),
        outputs_(static_cast<size_t>(context->num_outputs()), nullptr),
        done_(std::move(done)) {}

  void Start(const AttrValue::ShapeList& declared) {
    status_ = Allocate(declared);
    Advance();
  }

 private:
  void Advance() {
    const Ref<Rows> self(this);
    do {
      if (status_.ok() && context_.cancellation().IsCancelled()) {
        status_ = context_.cancellation().status();
      }
      if (!status_.ok() || row_ == num_rows_) {
        done_(status_);
        return;
      }
      met_.store(false, std::memory_order_relaxed);
      context_.environment().functions->Run(
          function_, Arguments(), &context_.cancellation(),
          [self](StatusOr<std::vector<Tensor>> results) {
            self->TakeIn(std::move(results));
            if (self->met_.exchange(true, std::memory_order_acq_rel)) self->Advance();
          });
      // Whoever is second of "the call returned" and "the function ended" goes on.
    } while (met_.exchange(true, std::memory_order_acq_rel));
  }

  // Outputs whose shape was declared have their place before the first row.
  Status Allocate(const AttrValue::ShapeList& declared) {
    for (int i = 0; i < num_mapped_; ++i) {
      const absl::Span<const int64_t> dims = context_.input(i).shape().dims();
      WEFT_ASSIGN_OR_RETURN(Shape row, Shape::Make(dims.subspan(1)));
      rows_.push_back(std::move(row));
    }
    for (int o = 0; o < context_.num_outputs(); ++o) {
      const PartialShape& shape = declared[static_cast<size_t>(o)];
      if (shape.IsFullyDefined()) {
        WEFT_ASSIGN_OR_RETURN(const Shape known, shape.ToShape());
        WEFT_RETURN_IF_ERROR(AllocateFor(o, known));
      } else if (num_rows_ == 0) {
        return InvalidArgument("Output ", o, " has no rows and no shape that is known: declare ",
                               "`output_shapes`");
      }
    }
    return absl::OkStatus();
  }

  std::vector<Tensor> Arguments() const {
    std::vector<Tensor> arguments;
    for (int i = 0; i < context_.num_inputs(); ++i) {
      if (i >= num_mapped_) {
        arguments.push_back(context_.input(i));
        continue;
      }
      const Tensor& input = context_.input(i);
      arguments.push_back(
          input.SliceRows(row_, row_ + 1).BitcastTo(input.dtype(), rows_[static_cast<size_t>(i)]));
    }
    return arguments;
  }

  Status AllocateFor(int output, const Shape& row) {
    Dims dims = {num_rows_};
    dims.insert(dims.end(), row.dims().begin(), row.dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(outputs_[static_cast<size_t>(output)],
                          context_.AllocateOutput(output, shape));
    return absl::OkStatus();
  }

  void TakeIn(StatusOr<std::vector<Tensor>> results) {
    status_ = results.status();
    if (status_.ok()) status_ = Store(*results);
    ++row_;
  }

  Status Store(const std::vector<Tensor>& results) {
    if (results.size() != outputs_.size()) {
      return InvalidArgument("Function '", function_.name, "' gives ", results.size(),
                             " values, expected ", outputs_.size());
    }
    for (size_t o = 0; o < results.size(); ++o) {
      const Tensor& value = results[o];
      if (outputs_[o] == nullptr) {
        WEFT_RETURN_IF_ERROR(AllocateFor(static_cast<int>(o), value.shape()));
      }
      const absl::Span<const int64_t> wanted = outputs_[o]->shape().dims();
      const absl::Span<const int64_t> got = value.shape().dims();
      if (value.dtype() != outputs_[o]->dtype() ||
          !std::equal(got.begin(), got.end(), wanted.begin() + 1, wanted.end())) {
        return InvalidArgument("Output ", o, " of function '", function_.name, "' is ",
                               DTypeName(value.dtype()), " ", value.shape().ToString(), " for row ",
                               row_, ", expected a row of ", DTypeName(outputs_[o]->dtype()), " ",
                               outputs_[o]->shape().ToString());
      }
      CopyElements(value, 0, value.num_elements(), outputs_[o], row_ * value.num_elements());
    }
    return absl::OkStatus();
  }

  KernelContext& context_;  // lives until done_ is called
  const FunctionRef& function_;
  const int num_mapped_;
  const int64_t num_rows_;
  int64_t row_ = 0;
  std::vector<Shape> rows_;  // by mapped argument
  Status status_;
  std::vector<Tensor*> outputs_;
  OpKernel::Done done_;
  std::atomic<bool> met_{false};
};

class MapDefunKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<MapDefunKernel>();
    WEFT_ASSIGN_OR_RETURN(kernel->function_, c.Attr<FunctionRef>("f"));
    WEFT_ASSIGN_OR_RETURN(const auto mapped, c.Attr<AttrValue::TypeList>("Targuments"));
    kernel->num_mapped_ = static_cast<int>(mapped.size());
    WEFT_ASSIGN_OR_RETURN(kernel->shapes_, c.Attr<AttrValue::ShapeList>("output_shapes"));
    if (static_cast<int>(kernel->shapes_.size()) != c.num_outputs()) {
      return InvalidArgument("`output_shapes` has ", kernel->shapes_.size(),
                             " entries, expected one for each of ", c.num_outputs(), " outputs");
    }
    return kernel;
  }

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<int64_t> rows = CountRows(c);
    if (!rows.ok()) {
      done(rows.status());
      return;
    }
    const auto run = MakeRef<Rows>(&c, &function_, num_mapped_, *rows, std::move(done));
    run->Start(shapes_);
  }

 private:
  StatusOr<int64_t> CountRows(KernelContext& c) const {
    if (c.environment().functions == nullptr) {
      return FailedPrecondition("MapDefun cannot be called where there is no graph");
    }
    for (int i = 0; i < num_mapped_; ++i) {
      if (c.input(i).rank() == 0) {
        return InvalidArgument("All inputs must have rank at least 1. Input ", i,
                               " has a rank of 0");
      }
      if (c.input(i).shape().dim(0) != c.input(0).shape().dim(0)) {
        return InvalidArgument("All inputs must have the same dimension 0. Input ", i,
                               " has leading dimension ", c.input(i).shape().dim(0),
                               ", while all previous inputs have leading dimension ",
                               c.input(0).shape().dim(0));
      }
    }
    return c.input(0).shape().dim(0);
  }

  FunctionRef function_;
  int num_mapped_ = 0;
  AttrValue::ShapeList shapes_;
};

Status RowsOfDeclaredShapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto declared, c.Attr<AttrValue::ShapeList>("output_shapes"));
  if (static_cast<int>(declared.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           declared.size(), " vs. ", c.num_outputs(), ")");
  }
  return shapes::Unknown(c);
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("MapDefun")
          .Doc("Calls `f` for each row of `arguments`, with all of `captured_inputs`, and stacks "
               "what it gives.\nAll arguments have as many rows.")
          .Input("arguments: Targuments")
          .Input("captured_inputs: Tcaptured")
          .Output("output: output_types")
          .Attr("Targuments: list(type) >= 1")
          .Attr("Tcaptured: list(type) >= 0 = []")
          .Attr("output_types: list(type) >= 1")
          .Attr("output_shapes: list(shape) >= 1")
          .Attr("f: func")
          .Attr("max_intra_op_parallelism: int = 1")
          .Shape(RowsOfDeclaredShapes)
          .NoGradient()
          .Kernel(MakeKernel<MapDefunKernel>()));
}

}  // namespace weft::ops::control::map_defun
