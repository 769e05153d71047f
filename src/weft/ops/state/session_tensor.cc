// SPDX-License-Identifier: Apache-2.0
// Tensors that stay with the session: a step gets a handle, later steps the value.
#include "weft/kernel/session_tensor.h"

#include <atomic>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"

namespace weft::ops::state::session_tensor {
namespace {

StatusOr<ResourceManager*> StoreOf(const KernelContext& c) {
  const SessionScope* session = c.environment().session;
  if (session != nullptr && session->resources != nullptr) return session->resources;
  return FailedPrecondition(c.call().op(), " called on null session state");
}

StatusOr<std::string> HandleOfInput(const KernelContext& c) {
  if (c.input(0).num_elements() == 1) return c.input(0).scalar<std::string>();
  return InvalidArgument("The handle must be a scalar, got shape ", c.input(0).shape().ToString());
}

Status NotInStore(const std::string& handle) {
  return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
}

template <bool is_resource>
class KeepKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    static std::atomic<int64_t> next{0};
    WEFT_ASSIGN_OR_RETURN(ResourceManager * store, StoreOf(c));
    const std::string handle = absl::StrCat(
        c.name(), ";", next.fetch_add(1, std::memory_order_relaxed), ";", c.device().name());
    // The bytes may be those of a slot that the next step uses again.
    WEFT_ASSIGN_OR_RETURN(Tensor value, c.input(0).Clone());
    WEFT_RETURN_IF_ERROR(store
                             ->LookupOrCreate<SessionTensor>(kTensorHandleContainer, handle,
                                                             [&]() -> StatusOr<Ref<SessionTensor>> {
                                                               return MakeRef<SessionTensor>(
                                                                   std::move(value));
                                                             })
                             .status());
    if constexpr (is_resource) {
      c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                                   .container = kTensorHandleContainer,
                                                   .name = handle,
                                                   .type_name = "tensorflow::Tensor"}));
    } else {
      c.SetOutput(0, Tensor::Scalar(handle));
    }
    return absl::OkStatus();
  }
};

class GetKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(ResourceManager * store, StoreOf(c));
    WEFT_ASSIGN_OR_RETURN(const std::string handle, HandleOfInput(c));
    const StatusOr<Ref<SessionTensor>> found =
        store->Lookup<SessionTensor>(kTensorHandleContainer, handle);
    if (!found.ok()) return NotInStore(handle);
    if ((*found)->value().dtype() != c.output_dtype(0)) {
      return InvalidArgument("The tensor with handle '", handle, "' is ",
                             DTypeName((*found)->value().dtype()), ", not ",
                             DTypeName(c.output_dtype(0)));
    }
    c.SetOutput(0, (*found)->value());
    return absl::OkStatus();
  }
};

class DeleteKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(ResourceManager * store, StoreOf(c));
    WEFT_ASSIGN_OR_RETURN(const std::string handle, HandleOfInput(c));
    if (store->Remove<SessionTensor>(kTensorHandleContainer, handle).ok()) return absl::OkStatus();
    return NotInStore(handle);
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("GetSessionHandle")
                    .Doc("Keeps the value with the session and gives its handle, a string.")
                    .Input("value: T")
                    .Output("handle: string")
                    .Attr("T: type")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<KeepKernel<false>>(), KernelCost::kInline));
  catalogue.Add(OpSpec("GetSessionHandleV2")
                    .Doc("Keeps the value with the session and gives its handle, a resource.")
                    .Input("value: T")
                    .Output("handle: resource")
                    .Attr("T: type")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<KeepKernel<true>>(), KernelCost::kInline));
  catalogue.Add(OpSpec("GetSessionTensor")
                    .Doc("The value that the session keeps under this handle.\nInvalidArgument "
                         "for a handle that it does not know.")
                    .Input("handle: string")
                    .HostInput("handle")
                    .Output("value: dtype")
                    .Attr("dtype: type")
                    .Stateful()
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<GetKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("DeleteSessionTensor")
                    .Doc("Lets the session forget the value under this handle.\nInvalidArgument "
                         "for a handle that it does not know.")
                    .Input("handle: string")
                    .HostInput("handle")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<DeleteKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::session_tensor
