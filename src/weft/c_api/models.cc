// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "absl/strings/str_split.h"

#include "weft/c_api/handles.h"
#include "weft/client/session.h"
#include "weft/graph/import.h"
#include "weft/train/saved_model.h"

struct weft_model {
  weft::train::LoadedModel model;
  std::unique_ptr<weft::session::Session> session;
};

using weft::Status;
using weft::c_api::Answer;
using weft::c_api::CheckList;
using weft::c_api::NotNull;

namespace weft::c_api {
namespace {

constexpr char kDefaultSignature[] = "serving_default";

StatusOr<std::unique_ptr<weft_model>> LoadModel(const char* folder, const char* tags) {
  auto loaded = std::make_unique<weft_model>();
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(
      loaded->model, train::LoadSavedModel(program, folder,
                                           {.tags = absl::StrSplit(tags == nullptr ? "serve" : tags,
                                                                   ',', absl::SkipEmpty()),
                                            .clear_devices = true}));
  WEFT_RETURN_IF_ERROR(Annotate(program.status(), folder));
  WEFT_ASSIGN_OR_RETURN(loaded->session, client::NewSession({}));
  WEFT_RETURN_IF_ERROR(Annotate(loaded->session->Extend(ExportGraph(program.graph())), folder));
  WEFT_RETURN_IF_ERROR(loaded->model.Restore(*loaded->session));
  return loaded;
}

// The name at `index`, or null.
template <typename Map>
const char* NameAt(const Map& map, int index) {
  if (index < 0 || static_cast<size_t>(index) >= map.size()) return nullptr;
  return std::next(map.begin(), index)->first.c_str();
}

const train::Signature* FindSignature(const weft_model* model, const char* signature) {
  if (model == nullptr) return nullptr;
  const auto found =
      model->model.signatures.find(signature == nullptr ? kDefaultSignature : signature);
  return found == model->model.signatures.end() ? nullptr : &found->second;
}

Status Predict(const weft_model& model, const char* signature,
               const std::map<std::string, Tensor>& inputs, absl::Span<const char* const> names,
               weft_tensor** outputs) {
  WEFT_ASSIGN_OR_RETURN(
      const auto results,
      model.model.Call(*model.session, signature == nullptr ? kDefaultSignature : signature,
                       inputs));
  std::vector<std::unique_ptr<weft_tensor>> made;
  for (const char* name : names) {
    const auto result = results.find(name);
    if (result == results.end())
      return InvalidArgument("The signature gives nothing that is called '", name, "'");
    weft_tensor* tensor = nullptr;
    WEFT_RETURN_IF_ERROR(GiveTensor(result->second, &tensor));
    made.emplace_back(tensor);
  }
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft::c_api

weft_error* weft_model_load(const char* folder, const char* tags, weft_model** out) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(folder, "names"));
    WEFT_RETURN_IF_ERROR(NotNull(out, "results"));
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<weft_model> model, weft::c_api::LoadModel(folder, tags));
    *out = model.release();
    return absl::OkStatus();
  });
}

void weft_model_free(weft_model* model) { delete model; }

const char* weft_model_signature(const weft_model* model, int index) {
  return model == nullptr ? nullptr : weft::c_api::NameAt(model->model.signatures, index);
}
const char* weft_model_input(const weft_model* model, const char* signature, int index) {
  const weft::train::Signature* const found = weft::c_api::FindSignature(model, signature);
  return found == nullptr ? nullptr : weft::c_api::NameAt(found->inputs, index);
}
const char* weft_model_output(const weft_model* model, const char* signature, int index) {
  const weft::train::Signature* const found = weft::c_api::FindSignature(model, signature);
  return found == nullptr ? nullptr : weft::c_api::NameAt(found->outputs, index);
}

weft_error* weft_model_predict(const weft_model* model, const char* signature,
                               const char* const* input_names, const weft_tensor* const* inputs,
                               int num_inputs, const char* const* output_names,
                               weft_tensor** outputs, int num_outputs) {
  return Answer([&]() -> Status {
    if (outputs != nullptr) std::fill_n(outputs, std::max(num_outputs, 0), nullptr);
    WEFT_RETURN_IF_ERROR(NotNull(model, "handles"));
    WEFT_RETURN_IF_ERROR(CheckList(input_names, num_inputs, "names"));
    WEFT_RETURN_IF_ERROR(CheckList(inputs, num_inputs, "inputs"));
    WEFT_RETURN_IF_ERROR(CheckList(output_names, num_outputs, "names"));
    if (num_outputs > 0) WEFT_RETURN_IF_ERROR(NotNull(outputs, "results"));
    std::map<std::string, weft::Tensor> given;
    for (int i = 0; i < num_inputs; ++i) given[input_names[i]] = inputs[i]->tensor;
    return weft::c_api::Predict(*model, signature, given,
                                absl::MakeConstSpan(output_names, static_cast<size_t>(num_outputs)),
                                outputs);
  });
}
