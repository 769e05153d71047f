// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/train/optimizer_kernel.h"

#include <memory>

#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::train {
namespace {

using state::LockedVariables;

// What a kernel needs of a description, shared by all its nodes.
struct Shared {
  std::string gradient;
  std::vector<std::string> variables;
  std::vector<ScalarInput> scalars;
  int gradient_position;
  std::string flag;  // name of the attribute
  bool is_sparse;
  UpdateFunction update;
};

Status CheckBound(const ScalarInput& input, double value) {
  switch (input.bound) {
    case Bound::kPositive:
      if (!(value > 0)) return InvalidArgument(input.name, " is not a positive scalar: ", value);
      break;
    case Bound::kNonNegative:
      if (!(value >= 0))
        return InvalidArgument(input.name, " is not a non-negative scalar: ", value);
      break;
    case Bound::kNonPositive:
      if (!(value <= 0))
        return InvalidArgument(input.name, " is not a non-positive scalar: ", value);
      break;
    case Bound::kNone:
      break;
  }
  return absl::OkStatus();
}

class OptimizerKernel final : public OpKernel {
 public:
  OptimizerKernel(std::shared_ptr<const Shared> shared, DType dtype, bool flag)
      : shared_(std::move(shared)),
        num_variables_(static_cast<int>(shared_->variables.size())),
        gradient_input_(num_variables_ + shared_->gradient_position),
        dtype_(dtype),
        flag_(flag) {}

  Status Compute(KernelContext& c) override {
    UpdateCall call{.context = &c, .flag = flag_};
    WEFT_RETURN_IF_ERROR(ReadScalars(c, &call));
    WEFT_RETURN_IF_ERROR(UpdateVariables(c, &call));
    state::ForwardTarget(c, 0, 0);
    return absl::OkStatus();
  }

 private:
  Status ReadScalars(const KernelContext& c, UpdateCall* call) const {
    const int num_scalars = static_cast<int>(shared_->scalars.size());
    const int shift = shared_->is_sparse ? 2 : 1;  // the gradient and its indices stand in between
    for (int k = 0; k < num_scalars; ++k) {
      const int i = num_variables_ + k + (k >= shared_->gradient_position ? shift : 0);
      const Tensor& scalar = c.input(i);
      const ScalarInput& input = shared_->scalars[k];
      if (!scalar.shape().IsScalar()) {
        return InvalidArgument(input.name, " is not a scalar: ", scalar.shape().ToString());
      }
      call->scalars[k] = &scalar;
      if (input.bound != Bound::kNone) {
        WEFT_RETURN_IF_ERROR(CheckBound(input, call->Scalar<double>(k)));
      }
    }
    return absl::OkStatus();
  }

  Status UpdateVariables(const KernelContext& c, UpdateCall* call) const {
    const Tensor* const rows = shared_->is_sparse ? &c.input(gradient_input_ + 1) : nullptr;
    WEFT_ASSIGN_OR_RETURN(LockedVariables variables,
                          LockedVariables::Lock(c, num_variables_, dtype_, rows));
    const Shape& shape = variables.value(0).shape();
    for (int k = 0; k < num_variables_; ++k) {
      Tensor& value = variables.value(k);
      if (value.shape() != shape) return Mismatch(shared_->variables[k], shape, value.shape());
      call->variables[k] = value.bytes();
    }
    const Tensor& gradient = c.input(gradient_input_);
    call->gradient = gradient.bytes();
    if (shared_->is_sparse) {
      WEFT_RETURN_IF_ERROR(CheckRows(c, shape, gradient));
      call->indices = &c.input(gradient_input_ + 1);
      call->row_size = shape.dim(0) == 0 ? 0 : shape.num_elements() / shape.dim(0);
    } else {
      if (gradient.shape() != shape) return Mismatch(shared_->gradient, shape, gradient.shape());
      call->num_elements = shape.num_elements();
    }
    shared_->update(*call);
    return absl::OkStatus();
  }

  static Status Mismatch(const std::string& name, const Shape& shape, const Shape& other) {
    return InvalidArgument("var and ", name, " do not have the same shape", shape.ToString(), " ",
                           other.ToString());
  }

  Status CheckRows(const KernelContext& c, const Shape& shape, const Tensor& gradient) const {
    const Tensor& indices = c.input(gradient_input_ + 1);
    if (shape.rank() < 1) {
      return InvalidArgument("var must be at least 1 dimensional, got ", shape.ToString());
    }
    if (!indices.shape().IsVector()) {
      return InvalidArgument("indices must be one-dimensional, got ", indices.shape().ToString());
    }
    if (gradient.rank() != shape.rank()) {
      return InvalidArgument("var and grad must have the same rank, got ", shape.ToString(),
                             " and ", gradient.shape().ToString());
    }
    for (int d = 1; d < shape.rank(); ++d) {
      if (gradient.dim(d) != shape.dim(d)) {
        return InvalidArgument("var and grad must match in dimension ", d, ", got ",
                               shape.ToString(), " and ", gradient.shape().ToString());
      }
    }
    if (gradient.dim(0) != indices.dim(0)) {
      return InvalidArgument("grad must be the same size as indices in the first dimension, got ",
                             gradient.shape().ToString(), " and ", indices.shape().ToString());
    }
    return indices.dtype() == DType::kInt32 ? CheckIndices<int32_t>(indices, shape.dim(0))
                                            : CheckIndices<int64_t>(indices, shape.dim(0));
  }

  template <typename Index>
  static Status CheckIndices(const Tensor& indices, int64_t rows) {
    const absl::Span<const Index> values = indices.span<Index>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || static_cast<int64_t>(values[i]) >= rows) {
        return InvalidArgument("Index ", values[i], " at offset ", i,
                               " in indices is out of range [0, ", rows, ")");
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<const Shared> shared_;  // of the op, which the catalogue keeps too
  const int num_variables_;
  const int gradient_input_;
  const DType dtype_;
  const bool flag_;
};

std::string FlagName(const std::string& flag) { return flag.substr(0, flag.find(':')); }

bool FlagDefault(const std::string& flag) { return flag.find("= true") != std::string::npos; }

Status ReferenceShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

OpSpec Signature(const OptimizerDescription& optimizer, bool is_sparse, bool is_resource) {
  OpSpec spec(absl::StrCat(is_resource ? "Resource" : "", is_sparse ? "Sparse" : "", "Apply",
                           optimizer.name));
  for (const std::string& name : optimizer.variables) {
    spec.Input(absl::StrCat(name, is_resource ? ": resource" : ": Ref(T)"));
  }
  for (int k = 0; k <= static_cast<int>(optimizer.scalars.size()); ++k) {
    if (k == optimizer.gradient_position) {
      spec.Input(absl::StrCat(is_sparse ? optimizer.sparse_gradient : optimizer.gradient, ": T"));
      if (is_sparse) spec.Input("indices: Tindices");
    }
    if (k == static_cast<int>(optimizer.scalars.size())) break;
    const std::string& name = optimizer.scalars[k].name;
    spec.Input(absl::StrCat(name, name == "global_step" ? ": int64" : ": T"));
  }
  spec.Attr("T: numbertype");
  if (is_sparse) spec.Attr("Tindices: {int32, int64}");
  spec.Attr("use_locking: bool = false");
  if (!optimizer.flag.empty()) spec.Attr(optimizer.flag);
  if (is_resource) {
    spec.Stateful().Traits({.changes_variable = true});
  } else {
    spec.Output("out: Ref(T)");
  }
  return spec;
}

void RegisterForm(Catalogue& catalogue, const OptimizerDescription& optimizer, bool is_sparse,
                  bool is_resource) {
  OpSpec spec = Signature(optimizer, is_sparse, is_resource);
  spec.Doc(is_sparse
               ? absl::StrCat(optimizer.documentation,
                              "\nFor the rows of the variables that `indices` names; row i of "
                              "the gradient belongs to row indices[i]. Repeated indices apply "
                              "one after the other.\nInvalidArgument for an index out of range.")
               : absl::StrCat(optimizer.documentation, "\nVariables and gradient have one shape."));
  spec.Shape(ReferenceShape).NoGradient();
  for (const auto& [dtype, update] : is_sparse ? optimizer.sparse : optimizer.dense) {
    auto shared = std::make_shared<const Shared>(
        Shared{is_sparse ? optimizer.sparse_gradient : optimizer.gradient, optimizer.variables,
               optimizer.scalars, optimizer.gradient_position, FlagName(optimizer.flag), is_sparse,
               update});
    const bool flag_default = FlagDefault(optimizer.flag);
    KernelFactory factory = [shared, type = dtype, flag_default](
                                KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
      const bool flag = !shared->flag.empty() && c.AttrOr(shared->flag, flag_default);
      return std::make_unique<OptimizerKernel>(shared, type, flag);
    };
    spec.Kernel({.types = {{"T", {dtype}}}, .factory = std::move(factory)});
  }
  catalogue.Add(std::move(spec));
}

}  // namespace

}  // namespace weft::ops::train

namespace weft::rules {

void RegisterOptimizer(Catalogue& catalogue, const OptimizerDescription& optimizer) {
  for (const bool is_sparse : {false, true}) {
    if (is_sparse ? optimizer.sparse.empty() : !optimizer.has_dense_form) continue;
    if (optimizer.has_reference_form)
      ops::train::RegisterForm(catalogue, optimizer, is_sparse, false);
    ops::train::RegisterForm(catalogue, optimizer, is_sparse, true);
  }
}

}  // namespace weft::rules
