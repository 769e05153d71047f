// SPDX-License-Identifier: Apache-2.0
// Models as a C++ program writes and reads them, with installed headers alone.
//   model_tool export FOLDER         trains a line, exports it; prints what it gives for X
//   model_tool call FOLDER SIGNATURE prints what a model gives for X
//   model_tool tune FOLDER TO STEPS  trains a model's variables further, exports it to TO; prints
//   the loss
//                                    of each step and what it gives for X at last
//   model_tool run FOLDER NODE STEPS runs a node of a model and prints what it gives for X at last
//   model_tool saved_model|meta_graph|graph FROM TO   reads the bytes and writes them again
//   model_tool gradients FROM TO Y X adds d(Y)/d(X) to a GraphDef as `gradient`
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::GraphBuilder;
using weft::Status;
using weft::StatusOr;
using weft::Tensor;
using Words = std::vector<std::string>;

// X: 4 rows of 3 numbers.
Tensor Rows() {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(i % 5) - 1.5f);
  return Tensor::FromSpan<float>({4, 3}, values);
}

void Print(const Tensor& tensor) {
  for (const float value : tensor.span<float>()) std::printf("%.9g\n", value);
}

StatusOr<std::unique_ptr<weft::session::Session>> Start(train::Program& program) {
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(auto session, weft::client::NewSession({}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  return session;
}

// The mean square of `y`, which training makes smaller.
Endpoint LossOf(GraphBuilder& b, Endpoint y) {
  return op::Mean(b, op::Square(b, y), b.Constant(Tensor::Vector<int32_t>({0, 1})),
                  {.name = "loss_of_tool"});
}

Status Export(const std::string& folder) {
  train::Program program;
  GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1, 3}, .name = "x"});
  const Endpoint hidden =
      train::Dense(program, "hidden", x, 5, {.activation = train::Tanh, .seed = 3});
  const Endpoint y =
      op::Identity(b, train::Dense(program, "line", hidden, 2, {.seed = 4}), {.name = "y"});
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::Adam(0.01)->Minimize(program, LossOf(b, y)));
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  weft::Node* init = program.InitializeVariables();
  WEFT_ASSIGN_OR_RETURN(const auto session, Start(program));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  for (int i = 0; i < 5; ++i) {
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", Rows()}}, {}, {step->name()}, nullptr));
  }
  train::ExportOptions options;
  options.signatures["serving_default"] = train::MakeSignature(b, {{"x", x}}, {{"y", y}});
  options.signatures["hidden"] = train::MakeSignature(b, {{"x", x}}, {{"hidden", hidden}});
  WEFT_RETURN_IF_ERROR(train::ExportSavedModel(program, *saver, *session, folder, options));
  std::vector<Tensor> values;
  WEFT_RETURN_IF_ERROR(session->Run({{"x:0", Rows()}}, {"y:0"}, {}, &values));
  Print(values[0]);
  return absl::OkStatus();
}

Status Call(const std::string& folder, const std::string& signature) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const train::LoadedModel model, train::LoadSavedModel(program, folder));
  WEFT_ASSIGN_OR_RETURN(const auto session, Start(program));
  WEFT_RETURN_IF_ERROR(model.Restore(*session));
  WEFT_ASSIGN_OR_RETURN(const auto results, model.Call(*session, signature, {{"x", Rows()}}));
  for (const auto& [name, value] : results) Print(value);
  return absl::OkStatus();
}

Status Tune(const std::string& folder, const std::string& to, int steps) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const train::LoadedModel model, train::LoadSavedModel(program, folder));
  const train::Signature& signature = model.signatures.at("serving_default");
  WEFT_ASSIGN_OR_RETURN(const Endpoint y,
                        program.graph().FindEndpoint(signature.outputs.at("y").name));
  const Endpoint loss = LossOf(program.builder(), y);
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::GradientDescent(0.1)->Minimize(program, loss));
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  weft::Node* init = program.InitializeVariables();
  WEFT_ASSIGN_OR_RETURN(const auto session, Start(program));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  WEFT_RETURN_IF_ERROR(model.Restore(*session));
  const weft::session::Feed feed{signature.inputs.at("x").name, Rows()};
  std::vector<Tensor> values;
  for (int i = 0; i < steps; ++i) {
    WEFT_RETURN_IF_ERROR(session->Run({feed}, {train::NameOf(loss)}, {step->name()}, &values));
    Print(values[0]);
  }
  WEFT_RETURN_IF_ERROR(session->Run({feed}, {signature.outputs.at("y").name}, {}, &values));
  Print(values[0]);
  train::ExportOptions options;
  options.signatures["serving_default"] = signature;
  return train::ExportSavedModel(program, *saver, *session, to, options);
}

Status RunNode(const std::string& folder, const std::string& node, int steps) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const train::LoadedModel model, train::LoadSavedModel(program, folder));
  const train::Signature& signature = model.signatures.at("serving_default");
  WEFT_ASSIGN_OR_RETURN(const auto session, Start(program));
  WEFT_RETURN_IF_ERROR(model.Restore(*session));
  const weft::session::Feed feed{signature.inputs.at("x").name, Rows()};
  for (int i = 0; i < steps; ++i) WEFT_RETURN_IF_ERROR(session->Run({feed}, {}, {node}, nullptr));
  std::vector<Tensor> values;
  WEFT_RETURN_IF_ERROR(session->Run({feed}, {signature.outputs.at("y").name}, {}, &values));
  Print(values[0]);
  return absl::OkStatus();
}

Status Bytes(const std::string& what, const std::string& from, const std::string& to) {
  weft::RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, weft::ReadFile(files, from));
  std::string written;
  if (what == "saved_model") {
    WEFT_ASSIGN_OR_RETURN(const auto graphs, train::ParseSavedModel(bytes));
    WEFT_ASSIGN_OR_RETURN(written, train::SerializeSavedModel(graphs));
  } else if (what == "meta_graph") {
    WEFT_ASSIGN_OR_RETURN(const train::MetaGraph meta, train::ParseMetaGraph(bytes));
    WEFT_ASSIGN_OR_RETURN(written, train::SerializeMetaGraph(meta));
  } else {
    WEFT_ASSIGN_OR_RETURN(const weft::GraphDef def, weft::ParseGraphDef(bytes));
    WEFT_ASSIGN_OR_RETURN(written, weft::SerializeGraphDef(def));
  }
  return weft::WriteFile(files, to, written);
}

Status Gradients(const std::string& from, const std::string& to, const std::string& y,
                 const std::string& x) {
  weft::RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, weft::ReadFile(files, from));
  WEFT_ASSIGN_OR_RETURN(weft::GraphDef def, weft::ParseGraphDef(bytes));
  train::Program program;
  WEFT_RETURN_IF_ERROR(weft::ImportGraph(std::move(def), {}, &program.graph()));
  WEFT_ASSIGN_OR_RETURN(const Endpoint of, program.graph().FindEndpoint(y));
  WEFT_ASSIGN_OR_RETURN(const Endpoint by, program.graph().FindEndpoint(x));
  GraphBuilder& b = program.builder();
  WEFT_ASSIGN_OR_RETURN(const auto gradients, train::AddDenseGradients(b, {of}, {by}));
  op::Identity(b, gradients[0], {.name = "gradient"});
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(const std::string written,
                        weft::SerializeGraphDef(weft::ExportGraph(program.graph())));
  return weft::WriteFile(files, to, written);
}

Status Run(const Words& words) {
  const std::string& what = words[0];
  const size_t n = words.size();
  if (what == "export" && n == 2) return Export(words[1]);
  if (what == "call" && n == 3) return Call(words[1], words[2]);
  if (what == "tune" && n == 4) return Tune(words[1], words[2], std::atoi(words[3].c_str()));
  if (what == "run" && n == 4) return RunNode(words[1], words[2], std::atoi(words[3].c_str()));
  if (what == "gradients" && n == 5) return Gradients(words[1], words[2], words[3], words[4]);
  if (n == 3) return Bytes(what, words[1], words[2]);
  return weft::InvalidArgument("expected one of the forms that model_tool.cc begins with");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const Status status = Run(Words(argv + 1, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "model_tool: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
