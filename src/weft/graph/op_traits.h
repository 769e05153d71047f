// SPDX-License-Identifier: Apache-2.0
// Traits: what the compiler may know of an op without knowing its name. The file of an op states
// them (OpSpec::Traits); passes and the executor ask for them and never compare names.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// What a plan does for a node of the op. All but kKernel are the compiler's own: the ops behind
// them have no kernels.
enum class InstructionKind : uint8_t {
  kKernel,    // calls the kernel
  kArgument,  // its output is an argument of the step (_Arg)
  kResult,    // its input is a result of the step (_Retval)
  kSwitch,    // passes its data to output 1 or 0; the other output is dead
  kMerge,     // passes on the first live input, and tells which
  kCall,      // runs children[0] (PartitionedCall, a function by name)
  kBranch,    // runs children[then/else or case index] on the other inputs (If, Case)
  kLoop,      // runs children[1] while children[0] says so (While)
  kEnter,     // loops in version-1 form: into a loop's first iteration (or each, if constant)
  kExit,
  kNextIteration,
  kLoopCondition,
};

// Where a value comes from that no input gives.
enum class ValueSource : uint8_t {
  kNone,
  kConstant,     // the attribute `value`
  kPlaceholder,  // the step, which must feed it
  kVariable,  // gives a reference or a handle to a variable of the shape in the attribute `shape`
};

// What the first output is to the first input. Attributes and other inputs may say how.
enum class PassesOn : uint8_t {
  kNo,
  kItself,  // the same tensor
  kCopy,    // an equal tensor, in memory of its own if need be
  kView,    // the same elements in the same order, in another shape
};

// What each output tells of the shape of the input of its number: it needs no elements.
enum class ShapeFact : uint8_t { kNone, kSizes, kRank, kNumElements };

// What an op may become part of when products are fused with what follows them.
enum class FusesAs : uint8_t {
  kNothing,
  kProduct,     // of two matrices
  kBias,        // adds input 1, a vector, to the last dimension of input 0
  kSum,         // of two tensors that broadcast: may be a bias on either side
  kActivation,  // of one tensor, by its tile body
};

// The end of an edge that leaves the plan.
enum class Exchange : uint8_t { kNone, kSends, kReceives };

// What becomes of a node one of whose inputs is dead.
enum class DeadInputs : uint8_t {
  kSkipped,  // it does not run, and its outputs are dead too
  kTaken,    // it runs, and can ask which inputs are dead
  kIgnored,  // it runs as if they were alive
};

struct OpTraits {
  InstructionKind lowers_to = InstructionKind::kKernel;
  // Of a branch: input 0 is the number of the function to run, not a condition.
  bool selects_by_index = false;
  // Input 0 names the device where the function runs.
  bool names_device = false;
  ValueSource source = ValueSource::kNone;
  PassesOn passes_on = PassesOn::kNo;
  // The first output is the first input itself where this input has no elements; 0 is none.
  int passes_on_without = 0;
  // The op that does the same to a reference; empty if there is none.
  std::string reference_form;
  // Takes a reference and neither reads nor writes what is behind it.
  bool passes_reference = false;
  // Writes the variables behind its handles. Ops that take references do so anyway.
  bool changes_variable = false;
  ShapeFact tells = ShapeFact::kNone;
  FusesAs fuses_as = FusesAs::kNothing;
  Exchange exchange = Exchange::kNone;
  DeadInputs dead_inputs = DeadInputs::kSkipped;
};

}  // namespace weft
