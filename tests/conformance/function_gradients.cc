// SPDX-License-Identifier: Apache-2.0
// Graphs with functions, differentiated here, for function_gradients_test.py to differentiate with
// TensorFlow:
//
//   function_gradients FOLDER
//
// writes FOLDER/NAME.forward.pb (x and y) and FOLDER/NAME.pb (also d(y)/dx and the derivative of
// its sum), and prints a line NAME GRADIENT SECOND, the names of these tensors ("-" for none).
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "weft/graph/function.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/train/gradients.h"

namespace weft {
namespace {

using Tensors = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

const TensorType& kReals = *new TensorType{DType::kDouble, {}};
const TensorType& kInt = *new TensorType{DType::kInt32, {}};

Function Wave(GraphBuilder& b) {
  return DefineFunction(b, "wave", {kReals}, [](GraphBuilder& f, Arguments in) {
    return Tensors{f.Op("Mul", {f.Op("Exp", {in[0]}), f.Op("Sin", {in[0]})})};
  });
}

Function Roots(GraphBuilder& b) {
  return DefineFunction(b, "roots", {kReals}, [](GraphBuilder& f, Arguments in) {
    return Tensors{f.Op("Sqrt", {f.Op("AddV2", {f.Op("Square", {in[0]}), f.Scalar<double>(2)})})};
  });
}

Function Below(GraphBuilder& b, int count, const std::vector<TensorType>& types) {
  return DefineFunction(b, absl::StrCat("below_", count), types,
                        [count](GraphBuilder& f, Arguments in) {
                          return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(count)})};
                        });
}

Endpoint Next(GraphBuilder& f, Endpoint i) { return f.Op("AddV2", {i, f.Scalar<int32_t>(1)}); }

Endpoint ByCall(GraphBuilder& b, Endpoint x) { return Call(b, Wave(b), {x})[0]; }

Endpoint ByIf(GraphBuilder& b, Endpoint x) {
  const Endpoint sum = b.Op("Sum", {x, b.Scalar<int32_t>(0)});
  const Endpoint positive = b.Op("Greater", {sum, b.Scalar<double>(0)});
  return If(b, positive, Wave(b), Roots(b), {x})[0];
}

Endpoint ByCase(GraphBuilder& b, Endpoint x) {
  const Endpoint sum = b.Op("Sum", {x, b.Scalar<int32_t>(0)});
  const Endpoint which = b.Op("Cast", {sum}, {{"DstT", DType::kInt32}});
  return Case(b, which, {Wave(b), Roots(b)}, {x})[0];
}

// The variables of loops begin as TensorFlow's do, which its gradients count on: the iterations,
// and the most that there may be (-1: any number).
Endpoint ByWhile(GraphBuilder& b, Endpoint x) {
  const std::vector<TensorType> types{kInt, kInt, kReals, kReals};
  const Function step = DefineFunction(b, "step", types, [](GraphBuilder& f, Arguments in) {
    const Endpoint turned = f.Op("Mul", {in[2], f.Op("Cos", {in[2]})});
    return Tensors{Next(f, in[0]), in[1], f.Op("AddV2", {turned, in[3]}), in[3]};
  });
  const Tensors inputs{b.Scalar<int32_t>(0), b.Scalar<int32_t>(-1), x, x};
  return While(b, Below(b, 5, types), step, inputs)[2];
}

Endpoint ByIfInWhile(GraphBuilder& b, Endpoint x) {
  const std::vector<TensorType> types{kInt, kInt, kReals};
  const Function wave = Wave(b), roots = Roots(b);
  const Function step = DefineFunction(b, "step", types, [&](GraphBuilder& f, Arguments in) {
    const Endpoint odd =
        f.Op("Equal", {f.Op("FloorMod", {in[0], f.Scalar<int32_t>(2)}), f.Scalar<int32_t>(1)});
    return Tensors{Next(f, in[0]), in[1], If(f, odd, wave, roots, {in[2]})[0]};
  });
  const Tensors inputs{b.Scalar<int32_t>(0), b.Scalar<int32_t>(-1), x};
  return While(b, Below(b, 3, types), step, inputs)[2];
}

Endpoint ByTensorArray(GraphBuilder& b, Endpoint x) {
  Node* array = b.AddNode("TensorArrayV3", {b.Scalar<int32_t>(2)}, {{"dtype", DType::kDouble}});
  const Endpoint places = b.Constant(Tensor::Vector<int32_t>({1, 0}));
  const Endpoint flow = b.Op("TensorArrayScatterV3",
                             {Endpoint{array, 0}, places, b.Op("Exp", {x}), Endpoint{array, 1}});
  const Endpoint first = b.Op("TensorArrayReadV3", {Endpoint{array, 0}, b.Scalar<int32_t>(0), flow},
                              {{"dtype", DType::kDouble}});
  return b.Op("Mul", {x, first});
}

// Rows of one and of no values, whole and by rows.
Endpoint ByRagged(GraphBuilder& b, Endpoint x) {
  const Endpoint splits = b.Constant(Tensor::Vector<int64_t>({0, 1, 1, 2}));
  Endpoint values = x;
  for (const bool by_rows : {false, true}) {
    const Endpoint encoded =
        b.Op("RaggedTensorToVariant", {Tensors{splits}, values}, {{"batched_input", by_rows}});
    Node* decoded = b.AddNode("RaggedTensorFromVariant", {encoded},
                              {{"input_ragged_rank", by_rows ? 0 : 1},
                               {"output_ragged_rank", 1},
                               {"Tvalues", DType::kDouble}});
    values = b.Op("Mul", {Endpoint{decoded, 1}, b.Constant(Tensor::Vector<double>({2, -3}))});
  }
  return values;
}

Status Save(const Graph& graph, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, SerializeGraphDef(ExportGraph(graph)));
  std::ofstream(path, std::ios::binary) << bytes;
  return absl::OkStatus();
}

Status Write(const std::string& folder, const std::string& name,
             const std::function<Endpoint(GraphBuilder&, Endpoint)>& build) {
  Graph graph(&StandardCatalogue().ops());
  graph.versions().producer = kGraphVersion;
  GraphBuilder b(&graph);
  const Endpoint x = b.Op("Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", Shape{2}}}, "x");
  const Endpoint y = b.Op("Identity", {build(b, x)}, {}, "y");
  WEFT_RETURN_IF_ERROR(b.status());
  WEFT_RETURN_IF_ERROR(Save(graph, absl::StrCat(folder, "/", name, ".forward.pb")));
  WEFT_ASSIGN_OR_RETURN(const auto first, train::AddDenseGradients(b, {y}, {x}));
  WEFT_ASSIGN_OR_RETURN(const auto second, train::AddDenseGradients(b, {first[0]}, {x}));
  std::string names[2];
  for (const auto& [at, tensor] : {std::pair(0, first[0]), std::pair(1, second[0])}) {
    names[at] = tensor ? absl::StrCat(tensor.node->name(), ":", tensor.port) : "-";
  }
  std::printf("%s %s %s\n", name.c_str(), names[0].c_str(), names[1].c_str());
  return Save(graph, absl::StrCat(folder, "/", name, ".pb"));
}

Status WriteAll(const std::string& folder) {
  WEFT_RETURN_IF_ERROR(Write(folder, "call", ByCall));
  WEFT_RETURN_IF_ERROR(Write(folder, "if", ByIf));
  WEFT_RETURN_IF_ERROR(Write(folder, "case", ByCase));
  WEFT_RETURN_IF_ERROR(Write(folder, "while", ByWhile));
  WEFT_RETURN_IF_ERROR(Write(folder, "if_in_while", ByIfInWhile));
  WEFT_RETURN_IF_ERROR(Write(folder, "tensor_array", ByTensorArray));
  return Write(folder, "ragged", ByRagged);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: function_gradients FOLDER\n");
    return 2;
  }
  const weft::Status status = weft::WriteAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
