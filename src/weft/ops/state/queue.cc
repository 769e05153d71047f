// SPDX-License-Identifier: Apache-2.0
// Queues as ops: FIFO, padding, shuffling and by priority.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/queue_kernel.h"
#include "weft/ops/state/queue_tuples_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"

namespace weft::ops::state::queue {
namespace {

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c, const std::string& kind) {
    QueueOptions options;
    options.kind = kind;
    options.name = c.AttrOr<std::string>("shared_name", "");
    if (options.name.empty()) options.name = c.name();
    options.capacity = c.AttrOr<int64_t>("capacity", -1);
    if (options.capacity < 0) options.capacity = std::numeric_limits<int32_t>::max();
    WEFT_ASSIGN_OR_RETURN(options.types, c.Attr<AttrValue::TypeList>("component_types"));
    WEFT_ASSIGN_OR_RETURN(options.shapes, c.Attr<AttrValue::ShapeList>("shapes"));
    options.min_after_dequeue = c.AttrOr<int64_t>("min_after_dequeue", 0);
    options.seed = c.AttrOr<int64_t>("seed", 0);
    options.seed2 = c.AttrOr<int64_t>("seed2", 0);
    if (kind == "PriorityQueue") {
      options.types.insert(options.types.begin(), DType::kInt64);
      options.shapes.insert(options.shapes.begin(), Shape());
    }
    WEFT_RETURN_IF_ERROR(Validate(options));
    return std::make_unique<CreateKernel>(c, std::move(options));
  }
  CreateKernel(KernelConstruction& c, QueueOptions options)
      : options_(std::move(options)), output_(c, "tensorflow::QueueInterface") {}

  Status Compute(KernelContext& c) override {
    return output_.Give(
        c, [&]() -> StatusOr<Ref<Queue>> { return MakeQueue(options_); },
        [&](const Queue& queue) { return CheckSameQueue(queue.options(), options_); });
  }

 private:
  static Status Validate(const QueueOptions& options) {
    const bool must_have_shapes =
        options.kind == "PaddingFIFOQueue" || options.kind == "PriorityQueue";
    if (must_have_shapes && options.shapes.size() != options.types.size()) {
      return InvalidArgument("Shapes must be provided for all components, but received ",
                             options.types.size(), " dtypes and ", options.shapes.size(),
                             " shapes.");
    }
    if (!options.shapes.empty() && options.shapes.size() != options.types.size()) {
      return InvalidArgument("Different number of component types and shapes: ",
                             options.types.size(), " and ", options.shapes.size());
    }
    for (const PartialShape& shape : options.shapes) {
      if (options.kind == "PaddingFIFOQueue" ? shape.known_rank() : shape.IsFullyDefined())
        continue;
      return InvalidArgument("Shapes of a ", options.kind, " must be known, got ",
                             shape.ToString());
    }
    if (options.min_after_dequeue < 0) {
      return InvalidArgument("min_after_dequeue ", options.min_after_dequeue, " must be >= 0");
    }
    if (options.min_after_dequeue > 0 && options.min_after_dequeue >= options.capacity) {
      return InvalidArgument("min_after_dequeue ", options.min_after_dequeue,
                             " must be < capacity ", options.capacity);
    }
    return absl::OkStatus();
  }

  const QueueOptions options_;
  HandleOutput<Queue> output_;
};

std::string TypesText(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, DType t) { absl::StrAppend(out, DTypeName(t)); });
}

// Base of kernels that use a queue with components of given types.
class TupleKernel : public AsyncOpKernel {
 public:
  explicit TupleKernel(std::vector<DType> types) : types_(std::move(types)) {}

 protected:
  StatusOr<Ref<Queue>> QueueOf(const KernelContext& c) const {
    WEFT_ASSIGN_OR_RETURN(Ref<Queue> queue, ResourceOfInput<Queue>(c));
    if (queue->options().types == types_) return queue;
    return InvalidArgument("Signature mismatch, have: ", TypesText(types_),
                           " expected: ", TypesText(queue->options().types));
  }

 private:
  const std::vector<DType> types_;
};

Status RefuseTimeout(const KernelConstruction& c) {
  if (c.AttrOr<int64_t>("timeout_ms", -1) == -1) return absl::OkStatus();
  return InvalidArgument("Timeout not supported yet.");
}

template <bool is_many>
class EnqueueKernel final : public TupleKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_RETURN_IF_ERROR(RefuseTimeout(c));
    WEFT_ASSIGN_OR_RETURN(AttrValue::TypeList types, c.Attr<AttrValue::TypeList>("Tcomponents"));
    return std::make_unique<EnqueueKernel>(std::move(types));
  }
  using TupleKernel::TupleKernel;

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Queue>> queue = QueueOf(c);
    if (!queue.ok()) return done(queue.status());
    Queue::Element tuple;
    for (int i = 1; i < c.num_inputs(); ++i) tuple.push_back(c.input(i));
    StatusOr<Queue::Elements> elements = is_many
                                             ? SplitBatch((*queue)->options(), std::move(tuple))
                                             : CheckedTuple((*queue)->options(), std::move(tuple));
    if (!elements.ok()) return done(elements.status());
    (*queue)->Enqueue(Caller::Of(c), *std::move(elements), std::move(done));
  }
};

class DequeueKernel final : public TupleKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_RETURN_IF_ERROR(RefuseTimeout(c));
    WEFT_ASSIGN_OR_RETURN(AttrValue::TypeList types,
                          c.Attr<AttrValue::TypeList>("component_types"));
    return std::make_unique<DequeueKernel>(std::move(types));
  }
  using TupleKernel::TupleKernel;

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Queue>> queue = QueueOf(c);
    if (!queue.ok()) return done(queue.status());
    (*queue)->Dequeue(Caller::Of(c), 1, false,
                      [&c, done = std::move(done)](StatusOr<Queue::Elements> elements) mutable {
                        if (!elements.ok()) return done(elements.status());
                        Queue::Element& tuple = elements->front();
                        for (size_t i = 0; i < tuple.size(); ++i) {
                          c.SetOutput(static_cast<int>(i), std::move(tuple[i]));
                        }
                        done(absl::OkStatus());
                      });
  }
};

template <bool fewer_if_closed>
class DequeueManyKernel final : public TupleKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_RETURN_IF_ERROR(RefuseTimeout(c));
    WEFT_ASSIGN_OR_RETURN(AttrValue::TypeList types,
                          c.Attr<AttrValue::TypeList>("component_types"));
    return std::make_unique<DequeueManyKernel>(std::move(types));
  }
  using TupleKernel::TupleKernel;

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Queue>> queue = QueueOf(c);
    if (!queue.ok()) return done(queue.status());
    const QueueOptions& options = (*queue)->options();
    const Tensor& n = c.input(1);
    if (!n.shape().IsScalar() || n.scalar<int32_t>() < 0) {
      return done(InvalidArgument(fewer_if_closed ? "DequeueUpTo" : "DequeueMany", " requested ",
                                  n.ToString(), " elements: expected a scalar >= 0"));
    }
    if (options.shapes.empty()) {
      return done(InvalidArgument(options.kind,
                                  "'s DequeueMany and DequeueUpTo require the components "
                                  "to have specified shapes."));
    }
    if (n.scalar<int32_t>() == 0) return done(GiveBatch(c, **queue, {}));
    (*queue)->Dequeue(
        Caller::Of(c), n.scalar<int32_t>(), fewer_if_closed,
        [&c, held = *queue, done = std::move(done)](StatusOr<Queue::Elements> elements) mutable {
          if (!elements.ok()) return done(elements.status());
          done(GiveBatch(c, *held, *elements));
        });
  }

 private:
  static Status GiveBatch(KernelContext& c, const Queue& queue, const Queue::Elements& elements) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Shape shape = BatchShape(queue.options(), elements, i);
      WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(i, shape));
      JoinBatch(elements, i, output);
    }
    return absl::OkStatus();
  }
};

class CloseKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<CloseKernel>(c.AttrOr("cancel_pending_enqueues", false));
  }
  explicit CloseKernel(bool cancel_producers) : cancel_producers_(cancel_producers) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Queue>> queue = ResourceOfInput<Queue>(c);
    if (!queue.ok()) return done(queue.status());
    (*queue)->CloseQueue(Caller::Of(c), cancel_producers_, std::move(done));
  }

 private:
  const bool cancel_producers_;
};

class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Queue> queue, ResourceOfInput<Queue>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int32_t>() = static_cast<int32_t>(queue->size());
    return absl::OkStatus();
  }
};

class IsClosedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Queue> queue, ResourceOfInput<Queue>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<bool>() = queue->is_closed();
    return absl::OkStatus();
  }
};

// A reference to the names behind a resource handle.
class FakeQueueKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
    auto names = MakeRef<Variable>(handle->name, DType::kString, Shape{2});
    names->Assign(Tensor::Vector<std::string>({handle->container, handle->name}));
    c.SetOutputVariable(0, std::move(names));
    return absl::OkStatus();
  }
};

Status NamesShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

void RegisterQueue(Catalogue& catalogue, const std::string& kind,
                   const std::string& documentation) {
  const bool is_priority = kind == "PriorityQueue";
  for (const bool is_resource : {false, true}) {
    OpSpec spec(absl::StrCat(kind, is_resource ? "V2" : ""));
    spec.Doc(absl::StrCat(
        documentation,
        "\nNodes of one container and shared name share it; InvalidArgument if they do "
        "not agree on it. A capacity below 0 is none."));
    spec.Output(is_resource ? "handle: resource" : "handle: Ref(string)")
        .Attr(is_priority ? "component_types: list(type) >= 0 = []"
                          : "component_types: list(type) >= 1")
        .Attr(is_priority ? "shapes: list(shape) >= 0" : "shapes: list(shape) >= 0 = []")
        .Attr("capacity: int = -1");
    if (kind == "RandomShuffleQueue") {
      spec.Attr("min_after_dequeue: int = 0").Attr("seed: int = 0").Attr("seed2: int = 0");
    }
    spec.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Stateful()
        .Shape(is_resource ? ShapeFunction(shapes::Scalar) : ShapeFunction(NamesShape))
        .NoGradient()
        .Kernel([kind](KernelConstruction& c) { return CreateKernel::Make(c, kind); },
                KernelCost::kInline);
    catalogue.Add(std::move(spec));
  }
}

// An op on a queue, in both forms of handle.
template <typename Fill>
void RegisterUse(Catalogue& catalogue, const std::string& name, Fill fill) {
  OpSpec by_reference(name);
  fill(by_reference.Input("handle: Ref(string)"));
  catalogue.Add(std::move(by_reference.NoGradient()));
  OpSpec by_resource(absl::StrCat(name, "V2"));
  fill(by_resource.Input("handle: resource"));
  catalogue.Add(std::move(by_resource.Stateful().NoGradient()));
}

void RegisterTransfers(Catalogue& catalogue) {
  RegisterUse(catalogue, "QueueEnqueue", [](OpSpec& spec) {
    spec.Doc(
            "Puts a tuple in; waits while the queue is full.\nCancelled once the queue is closed; "
            "InvalidArgument if types or shapes do not fit it.")
        .Input("components: Tcomponents")
        .Attr("Tcomponents: list(type) >= 1")
        .Attr("timeout_ms: int = -1")
        .Shape(shapes::NoOutputs)
        .Kernel(MakeKernel<EnqueueKernel<false>>(), KernelCost::kInline);
  });
  RegisterUse(catalogue, "QueueEnqueueMany", [](OpSpec& spec) {
    spec.Doc(
            "Puts tuples in, one for each row of the components; waits while the queue is full.\n"
            "Cancelled once the queue is closed; InvalidArgument if types or shapes do not fit it.")
        .Input("components: Tcomponents")
        .Attr("Tcomponents: list(type) >= 1")
        .Attr("timeout_ms: int = -1")
        .Shape(shapes::NoOutputs)
        .Kernel(MakeKernel<EnqueueKernel<true>>(), KernelCost::kInline);
  });
  RegisterUse(catalogue, "QueueDequeue", [](OpSpec& spec) {
    spec.Doc(
            "Takes a tuple out; waits while there is none.\nOutOfRange when the queue is closed "
            "and "
            "empty.")
        .Output("components: component_types")
        .Attr("component_types: list(type) >= 1")
        .Attr("timeout_ms: int = -1")
        .Shape(shapes::Unknown)
        .Kernel(MakeKernel<DequeueKernel>(), KernelCost::kInline);
  });
  const auto dequeue_many = [](OpSpec& spec, const char* documentation, KernelFactory factory) {
    spec.Doc(documentation)
        .Input("n: int32")
        .HostInput("n")
        .Output("components: component_types")
        .Attr("component_types: list(type) >= 1")
        .Attr("timeout_ms: int = -1")
        .Shape(shapes::Unknown)
        .Kernel(std::move(factory), KernelCost::kInline);
  };
  RegisterUse(catalogue, "QueueDequeueMany", [&](OpSpec& spec) {
    dequeue_many(spec,
                 "Takes n tuples out, stacked; waits until there are as many.\nOutOfRange when "
                 "the queue is closed with fewer; InvalidArgument if it has no shapes.",
                 MakeKernel<DequeueManyKernel<false>>());
  });
  RegisterUse(catalogue, "QueueDequeueUpTo", [&](OpSpec& spec) {
    dequeue_many(spec,
                 "Takes n tuples out, stacked, or what is left of a closed queue.\nOutOfRange "
                 "when the queue is closed and empty; InvalidArgument if it has no shapes.",
                 MakeKernel<DequeueManyKernel<true>>());
  });
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterQueue(catalogue, "FIFOQueue",
                "A queue that gives tuples of tensors in the order they came.");
  RegisterQueue(
      catalogue, "PaddingFIFOQueue",
      "A FIFO queue whose shapes may have unknown sizes: stacked tuples are filled up with "
      "zeros.");
  RegisterQueue(catalogue, "RandomShuffleQueue",
                "A queue that gives tuples in random order; while open it keeps at least "
                "min_after_dequeue.");
  RegisterQueue(catalogue, "PriorityQueue",
                "A queue that gives the tuple with the smallest first component, an int64 scalar.");
  RegisterTransfers(catalogue);
  RegisterUse(catalogue, "QueueClose", [](OpSpec& spec) {
    spec.Doc(
            "Closes the queue after the enqueues that wait, or cancels them.\nCancelled if it is "
            "closed.")
        .Attr("cancel_pending_enqueues: bool = false")
        .Shape(shapes::NoOutputs)
        .Kernel(MakeKernel<CloseKernel>(), KernelCost::kInline);
  });
  RegisterUse(catalogue, "QueueSize", [](OpSpec& spec) {
    spec.Doc("How many tuples are in the queue.")
        .Output("size: int32")
        .HostOutput("size")
        .Shape(shapes::Scalar)
        .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline);
  });
  RegisterUse(catalogue, "QueueIsClosed", [](OpSpec& spec) {
    spec.Doc("Whether the queue is closed.")
        .Output("is_closed: bool")
        .Shape(shapes::Scalar)
        .Kernel(MakeKernel<IsClosedKernel>(), KernelCost::kInline);
  });
  catalogue.Add(OpSpec("FakeQueue")
                    .Doc("The older form of a queue's handle.")
                    .Input("resource: resource")
                    .Output("handle: Ref(string)")
                    .Stateful()
                    .Shape(NamesShape)
                    .NoGradient()
                    .Kernel(MakeKernel<FakeQueueKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::queue
