// SPDX-License-Identifier: Apache-2.0
// Ops that the partitioner puts where an edge crosses devices, and at the ends of a function.
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::send_recv {
namespace {

StatusOr<RendezvousKey> KeyOf(KernelConstruction& c) {
  RendezvousKey key;
  WEFT_ASSIGN_OR_RETURN(key.send_device, c.Attr<std::string>("send_device"));
  WEFT_ASSIGN_OR_RETURN(key.receive_device, c.Attr<std::string>("recv_device"));
  WEFT_ASSIGN_OR_RETURN(key.edge, c.Attr<std::string>("tensor_name"));
  WEFT_ASSIGN_OR_RETURN(const int64_t incarnation, c.Attr<int64_t>("send_device_incarnation"));
  key.send_incarnation = static_cast<uint64_t>(incarnation);
  key.number = c.AttrOr<int64_t>("_edge", -1);
  key.wait = std::make_shared<const WaitSubject>(
      WaitSubject{.waiter = key.receive_device,
                  .what = absl::StrCat("tensor '", c.AttrOr<std::string>("_src", key.edge), "'"),
                  .on = key.send_device});
  return key;
}

// `key` of this call: inside a loop each iteration has its own. `storage` holds a copy if one is
// made.
const RendezvousKey& InFrame(const KernelContext& c, const RendezvousKey& key,
                             RendezvousKey* storage) {
  if (c.frame() == 0 && c.iteration() == 0) return key;
  *storage = key;
  storage->frame = c.frame();
  storage->iteration = c.iteration();
  return *storage;
}

class SendKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(RendezvousKey key, KeyOf(c));
    return std::make_unique<SendKernel>(std::move(key));
  }
  explicit SendKernel(RendezvousKey key) : key_(std::move(key)) {}

  Status Compute(KernelContext& c) override {
    Rendezvous* rendezvous = c.environment().rendezvous;
    if (rendezvous == nullptr) return Internal("Op kernel context needs to provide a rendezvous.");
    RendezvousKey storage;
    const RendezvousKey& key = InFrame(c, key_, &storage);
    if (c.input_is_dead(0)) return rendezvous->Send(key, Tensor(), true);
    return rendezvous->Send(key, c.input(0), false);
  }

 private:
  const RendezvousKey key_;
};

class ReceiveKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(RendezvousKey key, KeyOf(c));
    return std::make_unique<ReceiveKernel>(std::move(key));
  }
  explicit ReceiveKernel(RendezvousKey key) : key_(std::move(key)) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    Rendezvous* rendezvous = c.environment().rendezvous;
    if (rendezvous == nullptr) {
      done(Internal("Op kernel context needs to provide a rendezvous."));
      return;
    }
    RendezvousKey storage;
    rendezvous->Receive(
        InFrame(c, key_, &storage),
        [&c, done = std::move(done)](StatusOr<Tensor> tensor, bool is_dead) mutable {
          done(Take(c, std::move(tensor), is_dead));
        });
  }

 private:
  static Status Take(KernelContext& c, StatusOr<Tensor> tensor, bool is_dead) {
    WEFT_RETURN_IF_ERROR(tensor.status());
    if (is_dead) {
      c.SetOutputDead(0);
      return absl::OkStatus();
    }
    if (tensor->dtype() != c.output_dtype(0)) {
      return Internal("Received ", DTypeName(tensor->dtype()), " where ",
                      DTypeName(c.output_dtype(0)), " was expected");
    }
    c.SetOutput(0, *std::move(tensor));
    return absl::OkStatus();
  }

  const RendezvousKey key_;
};

OpSpec& AddKeyAttrs(OpSpec& spec) {
  return spec.Attr("tensor_name: string")
      .Attr("send_device: string")
      .Attr("send_device_incarnation: int")
      .Attr("recv_device: string")
      .Attr("client_terminated: bool = false");
}

void AddSend(Catalogue& catalogue, const char* name) {
  OpSpec spec(name);
  spec.Doc("Sends a tensor, or the news that it is dead, to the receive of the same name.")
      .Input("tensor: T")
      .HostInput("tensor")
      .AnyDevice()
      .Attr("T: type");
  catalogue.Add(AddKeyAttrs(spec)
                    .Stateful()
                    .Traits({.exchange = Exchange::kSends, .dead_inputs = DeadInputs::kTaken})
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SendKernel>(), KernelCost::kInline));
}

void AddReceive(Catalogue& catalogue, const char* name) {
  OpSpec spec(name);
  spec.Doc("Waits for the tensor that the send of the same name sends.")
      .Output("tensor: tensor_type")
      .HostOutput("tensor")
      .AnyDevice()
      .Attr("tensor_type: type");
  catalogue.Add(AddKeyAttrs(spec)
                    .Stateful()
                    .DistributedCommunication()
                    .Traits({.exchange = Exchange::kReceives})
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ReceiveKernel>(), KernelCost::kInline));
}

// What whoever writes the function's body says of the argument.
Status DeclaredShape(ShapeContext& c) {
  const auto shapes = c.Attr<AttrValue::ShapeList>("_output_shapes");
  if (shapes.ok() && shapes->size() == 1) c.set_output(0, shapes->front());
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddSend(catalogue, "_Send");
  AddSend(catalogue, "_HostSend");
  AddReceive(catalogue, "_Recv");
  AddReceive(catalogue, "_HostRecv");
  catalogue.Add(OpSpec("_Arg")
                    .Doc("Argument `index` of the function it stands in.")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("index: int >= 0")
                    .Stateful()
                    .Traits({.lowers_to = InstructionKind::kArgument})
                    .Shape(DeclaredShape)
                    .NoGradient());
  catalogue.Add(OpSpec("_Retval")
                    .Doc("Result `index` of the function it stands in.")
                    .Input("input: T")
                    .Attr("T: type")
                    .Attr("index: int >= 0")
                    .Stateful()
                    .Traits({.lowers_to = InstructionKind::kResult})
                    .Shape(shapes::NoOutputs)
                    .NoGradient());
}

}  // namespace weft::ops::control::send_recv
