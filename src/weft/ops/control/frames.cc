// SPDX-License-Identifier: Apache-2.0
// Control flow by dead tensors and loop frames: the ops of TensorFlow 1's cond and while_loop. But
// for RefSelect they have no kernels: the compiler makes plan instructions of them.
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::frames {
namespace {

class RefSelectKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) {
      return InvalidArgument("Index must be a scalar, but it has shape ",
                             c.input(0).shape().ToString());
    }
    const int32_t index = *c.input(0).data<int32_t>();
    if (index < 0 || index >= c.num_inputs() - 1) {
      return InvalidArgument("Index must be in the range [0, ", c.num_inputs() - 1, ") but got ",
                             index);
    }
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(index + 1));
    c.SetOutputVariable(0, Ref<Variable>(variable));
    return absl::OkStatus();
  }
};

class AsReferenceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

Status BothLikeData(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return absl::OkStatus();
}

// What all inputs agree on; the input of a back edge is not known yet.
Status MergeShape(ShapeContext& c) {
  c.set_output(1, Shape());
  PartialShape merged = c.input(0);
  for (int i = 1; i < c.num_inputs() && merged.known_rank(); ++i) {
    const PartialShape& other = c.input(i);
    if (!other.known_rank() || other.rank() != merged.rank()) {
      merged = PartialShape();
      break;
    }
    for (int d = 0; d < merged.rank(); ++d) {
      if (merged.dim(d) != other.dim(d)) merged.SetDim(d, -1);
    }
  }
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

// Only what never changes from iteration to iteration keeps its shape.
Status EnterShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool is_constant, c.Attr<bool>("is_constant"));
  if (is_constant) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status LoopCondShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(0, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Outside loops: each branch's gradient counts where that branch ran; a Merge passes on the live
// one.
Status SwitchGradient(GradientContext& c) {
  std::vector<Endpoint> branches;
  for (int i = 0; i < 2; ++i) {
    Endpoint gradient = c.gradient(i);
    if (!gradient && c.output(i).node->output_type(i).dtype == DType::kResource) {
      // A variable that only the other branch reads: where that one does not run, the step has no
      // gradient of it, as in TensorFlow.
      gradient = c.gradient(1 - i);
    } else if (!gradient) {
      // Zeros of the branch that no loss depends on, dead where that branch is.
      gradient = c.Op("ZerosLike", {c.output(i)});
    }
    branches.push_back(gradient);
  }
  c.set_input(0, c.Op("Merge", {branches}));
  return absl::OkStatus();
}

// Switches the gradient to the input that won.
Status MergeGradient(GradientContext& c) {
  const int count = c.node().num_inputs();
  for (int i = 0; i < count; ++i) {
    const Endpoint won = c.Op("Equal", {c.output(1), c.builder().Scalar<int32_t>(i)});
    Node* choice = c.builder().AddNode("Switch", {c.gradient(0), won});
    if (choice == nullptr) return c.builder().status();
    c.set_input(i, Endpoint{choice, 1});
  }
  return absl::OkStatus();
}

Status NoLoopGradient(GradientContext& c) {
  return Unimplemented("Gradients through ", c.node().op(),
                       " (loops of TensorFlow 1) are not implemented: use "
                       "While");
}

std::string MaybeRef(const char* name, bool is_ref) {
  return absl::StrCat(name, is_ref ? ": Ref(T)" : ": T");
}

void AddSwitch(Catalogue& catalogue, bool is_ref) {
  OpSpec spec(is_ref ? "RefSwitch" : "Switch");
  spec.Doc(
          "Passes `data` on to output_true if `pred` holds, else to output_false; the other output "
          "is dead.")
      .Input(MaybeRef("data", is_ref))
      .Input("pred: bool")
      .HostInput("pred")
      .Output(MaybeRef("output_false", is_ref))
      .Output(MaybeRef("output_true", is_ref))
      .Attr("T: type")
      .Traits({.lowers_to = InstructionKind::kSwitch,
               .reference_form = is_ref ? "" : "RefSwitch",
               .passes_reference = is_ref})
      .Shape(BothLikeData)
      .Gradient(SwitchGradient);
  if (is_ref) spec.AllowsUninitializedInput();
  catalogue.Add(std::move(spec));
}

void AddMerge(Catalogue& catalogue, bool is_ref) {
  catalogue.Add(OpSpec(is_ref ? "RefMerge" : "Merge")
                    .Doc("Passes on the first input that comes alive, and says which one that was.")
                    .Input(absl::StrCat("inputs: N * ", is_ref ? "Ref(T)" : "T"))
                    .Output(MaybeRef("output", is_ref))
                    .Output("value_index: int32")
                    .HostOutput("value_index")
                    .Attr("T: type")
                    .Attr("N: int >= 1")
                    .Traits({.lowers_to = InstructionKind::kMerge, .passes_reference = is_ref})
                    .Shape(MergeShape)
                    .Gradient(MergeGradient));
}

void AddEnter(Catalogue& catalogue, bool is_ref) {
  catalogue.Add(
      OpSpec(is_ref ? "RefEnter" : "Enter")
          .Doc("Passes `data` into the loop frame `frame_name`, for each iteration if is_constant.")
          .Input(MaybeRef("data", is_ref))
          .Output(MaybeRef("output", is_ref))
          .Attr("T: type")
          .Attr("frame_name: string")
          .Attr("is_constant: bool = false")
          .Attr("parallel_iterations: int = 10")
          .Traits({.lowers_to = InstructionKind::kEnter,
                   .reference_form = is_ref ? "" : "RefEnter",
                   .passes_reference = is_ref})
          .Shape(EnterShape)
          .Gradient(NoLoopGradient));
}

void AddPassing(Catalogue& catalogue, const char* name, InstructionKind kind, bool is_ref,
                const char* doc) {
  catalogue.Add(OpSpec(name)
                    .Doc(doc)
                    .Input(MaybeRef("data", is_ref))
                    .Output(MaybeRef("output", is_ref))
                    .Attr("T: type")
                    .Traits({.lowers_to = kind, .passes_reference = is_ref})
                    .Shape(shapes::SameAsInput)
                    .Gradient(NoLoopGradient));
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool is_ref : {false, true}) {
    AddSwitch(catalogue, is_ref);
    AddMerge(catalogue, is_ref);
    AddEnter(catalogue, is_ref);
  }
  AddPassing(catalogue, "Exit", InstructionKind::kExit, false,
             "Passes `data` out of its loop frame.");
  AddPassing(catalogue, "RefExit", InstructionKind::kExit, true,
             "Passes a reference out of its loop frame.");
  AddPassing(catalogue, "NextIteration", InstructionKind::kNextIteration, false,
             "Passes `data` to the next iteration of its loop frame.");
  AddPassing(catalogue, "RefNextIteration", InstructionKind::kNextIteration, true,
             "Passes a reference to the next iteration of its loop frame.");
  catalogue.Add(
      OpSpec("RefSelect")
          .AnyDevice()
          .HostInput("index")
          .Doc("Returns the reference `inputs[index]`. InvalidArgument for an index out of range.")
          .Input("index: int32")
          .Input("inputs: N * Ref(T)")
          .Output("output: Ref(T)")
          .Attr("T: type")
          .Attr("N: int >= 1")
          .Shape(shapes::Unknown)
          .NoGradient()
          .Kernel(MakeKernel<RefSelectKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("_AsReference")
                    .AnyDevice()
                    .Doc("A value on an edge for references: who reads there takes it as it is.")
                    .Input("input: T")
                    .Output("output: Ref(T)")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<AsReferenceKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("LoopCond")
                    .HostInput("input")
                    .HostOutput("output")
                    .Doc("Marks the condition on which the loop goes on.")
                    .Input("input: bool")
                    .Output("output: bool")
                    .Traits({.lowers_to = InstructionKind::kLoopCondition})
                    .Shape(LoopCondShape)
                    .NoGradient());
}

}  // namespace weft::ops::control::frames
