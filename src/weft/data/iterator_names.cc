// SPDX-License-Identifier: Apache-2.0
// Iterators as strings that can be fed, and their states that can be saved.
#include <string>
#include <utility>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/data/iterator_op.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::data::iterator_names {
namespace {

constexpr char kStateType[] = "weft::IteratorState";

class ToStringKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(IteratorOf(c, 0).status());
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
    tensorflow::ResourceHandleProto proto;
    ResourceHandleToProto(*handle, &proto);
    c.SetOutput(0, Tensor::Scalar(proto.SerializeAsString()));
    return absl::OkStatus();
  }
};

class FromStringKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    WEFT_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfAttrs(k));
    return std::make_unique<FromStringKernel>(std::move(spec));
  }
  explicit FromStringKernel(ElementSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ScalarInput<std::string>(c, "string_handle"));
    tensorflow::ResourceHandleProto proto;
    if (!proto.ParseFromString(text)) {
      return InvalidArgument("Could not parse string_handle as a valid ResourceHandle");
    }
    WEFT_ASSIGN_OR_RETURN(ResourceHandle handle, ResourceHandleFromProto(proto));
    if (handle.device != c.device().name()) {
      return InvalidArgument("Attempted create an iterator on device \"", c.device().name(),
                             "\" from handle defined on device \"", handle.device, "\"");
    }
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> found, FindIterator(c, handle));
    if (!spec_.types.empty() && !found->spec().types.empty()) {
      WEFT_RETURN_IF_ERROR(CheckSpec(spec_, found->spec()));
    }
    handle.object = found;
    c.SetOutput(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  }

 private:
  const ElementSpec spec_;
};

class SaveKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, IteratorOf(c, 0));
    WEFT_ASSIGN_OR_RETURN(Element state, iterator->Save());
    c.SetOutput(
        0, Tensor::Scalar(Variant{MakeRef<EncodedVariant>(kStateType, "1", std::move(state))}));
    return absl::OkStatus();
  }
};

class RestoreKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<IteratorResource> iterator, IteratorOf(c, 0));
    const Tensor& saved = c.input(1);
    const EncodedVariant* state =
        saved.num_elements() == 1
            ? dynamic_cast<const EncodedVariant*>(saved.data<Variant>()->value.get())
            : nullptr;
    if (state == nullptr || state->type_name() != kStateType) {
      return InvalidArgument("The state was not saved by an iterator of this kind");
    }
    return iterator->Restore(c, state->tensors());
  }
};

class DeviceNameKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
    c.SetOutput(0, Tensor::Scalar(handle->device));
    return absl::OkStatus();
  }
};

class NoModelKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override {
    return Unimplemented("Iterators of this server have no performance model");
  }
};

void RegisterNames(Catalogue& catalogue) {
  catalogue.Add(OpSpec("IteratorToStringHandle")
                    .Doc("The handle as a string, which can be fed.")
                    .Input("resource_handle: resource")
                    .Output("string_handle: string")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ToStringKernel>()));
  catalogue.Add(OpSpec("IteratorFromStringHandle")
                    .Doc("The iterator that such a string names.")
                    .Input("string_handle: string")
                    .Output("resource_handle: resource")
                    .Attr("output_types: list(type) >= 0 = []")
                    .Attr("output_shapes: list(shape) >= 0 = []")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromStringKernel>()));
  catalogue.Add(OpSpec("IteratorFromStringHandleV2")
                    .Doc("The iterator that such a string names.")
                    .Input("string_handle: string")
                    .Output("resource_handle: resource")
                    .Attr("output_types: list(type) >= 0 = []")
                    .Attr("output_shapes: list(shape) >= 0 = []")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromStringKernel>()));
  catalogue.Add(OpSpec("IteratorGetDevice")
                    .Doc("The name of the device that the iterator is on.")
                    .Input("resource: resource")
                    .Output("device: string")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<DeviceNameKernel>()));
  catalogue.Add(OpSpec("ExperimentalIteratorGetDevice")
                    .Doc("IteratorGetDevice under its first name.")
                    .Input("resource: resource")
                    .Output("device: string")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<DeviceNameKernel>()));
}

void RegisterStates(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SerializeIterator")
                    .Doc("Where the iterator stands.")
                    .Input("resource_handle: resource")
                    .Output("serialized: variant")
                    .Attr("external_state_policy: int = 0")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SaveKernel>()));
  catalogue.Add(
      OpSpec("DeserializeIterator")
          .Doc("Lets the iterator go on where a saved one stood, in the dataset that it was given.")
          .Input("resource_handle: resource")
          .Input("serialized: variant")
          .Stateful()
          .Shape(shapes::NoOutputs)
          .NoGradient()
          .Kernel(MakeKernel<RestoreKernel>()));
  catalogue.Add(OpSpec("IteratorGetModelProto")
                    .Doc("Refused: iterators have no performance model.")
                    .Input("iterator: resource")
                    .Output("model_proto: string")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<NoModelKernel>()));
}

void RegisterMultiDevice(Catalogue& catalogue) {
  catalogue.Add(OpSpec("MultiDeviceIteratorToStringHandle")
                    .Doc("The handle as a string, which can be fed.")
                    .Input("multi_device_iterator: resource")
                    .Output("string_handle: string")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ToStringKernel>()));
  catalogue.Add(OpSpec("MultiDeviceIteratorFromStringHandle")
                    .Doc("The iterator that such a string names.")
                    .Input("string_handle: string")
                    .Output("multi_device_iterator: resource")
                    .Attr("output_types: list(type) >= 0 = []")
                    .Attr("output_shapes: list(shape) >= 0 = []")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromStringKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterNames(catalogue);
  RegisterStates(catalogue);
  RegisterMultiDevice(catalogue);
}

}  // namespace weft::data::iterator_names
