// SPDX-License-Identifier: Apache-2.0
// Reductions over the members of a group: to all of them, or a part to each.
#include "weft/ops/collective/collective_kernel.h"

namespace weft::ops::collective::reduce {
namespace {

constexpr char kTypes[] = "T: {bfloat16, float, half, double, int32, int64}";

// Dimension 0 is divided by the size of the group, which is known in the step only.
Status ScatteredShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (shape.known_rank()) shape.SetDim(0, -1);
  c.set_output(0, shape);
  return absl::OkStatus();
}

OpSpec& AddReductionAttrs(OpSpec& spec) {
  return spec.Attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}").Attr("final_op: {'Id', 'Div'}");
}

OpSpec NewOp(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("input: T").HostInput("input").Output("data: T").HostOutput("data");
  return spec;
}

void AddV2(Catalogue& catalogue, const char* name, const char* doc, CollectiveKind kind,
           ShapeFunction shape) {
  OpSpec spec = NewOp(name, doc);
  AddOrderingTokens(AddKeyInputs(spec)).Attr(kTypes);
  AddCommonAttrs(AddReductionAttrs(spec))
      .Attr("is_stateless: bool = false")
      .Attr("Nordering_token: int >= 0 = 0")
      .Attr("max_subdivs_per_device: int = -1")
      .Shape(std::move(shape))
      .Kernel(MakeCollective<KeyedByInputs>(kind), KernelCost::kInline);
  catalogue.Add(FinishCollective(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec v1 = NewOp("CollectiveReduce",
                    "Gives every member the reduction of all members' inputs, which have one "
                    "shape; keys are attributes.");
  AddReductionAttrs(AddStaticKeys(v1.Attr(kTypes)))
      .Attr("subdiv_offsets: list(int)")
      .Attr("wait_for: list(int) = []");
  AddCommonAttrs(v1)
      .Shape(shapes::SameAsInput)
      .Kernel(MakeCollective<KeyedByAttributes>(CollectiveKind::kReduce), KernelCost::kInline);
  catalogue.Add(FinishCollective(v1));
  AddV2(catalogue, "CollectiveReduceV2",
        "Gives every member the reduction of all members' inputs, which have one shape; keys are "
        "inputs.",
        CollectiveKind::kReduce, shapes::SameAsInput);
  AddV2(catalogue, "CollectiveReduceScatterV2",
        "Reduces all members' inputs and gives each member, by rank, its part of dimension 0.",
        CollectiveKind::kReduceScatter, ScatteredShape);
}

}  // namespace weft::ops::collective::reduce
