// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/keras_files.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/files.h"
#include "weft/estimator/keras_object.h"
#include "weft/estimator/weight_files.h"
#include "weft/storage/hdf5.h"
#include "weft/storage/zip_archive.h"

namespace weft::estimator {
namespace {

constexpr uint64_t kMaxFile = uint64_t{8} << 30;

bool IsHdf5(const std::string& path) {
  return absl::EndsWith(path, ".h5") || absl::EndsWith(path, ".hdf5");
}

Status CheckKeras(const SaveOptions& options) {
  if (options.keras == 2 || options.keras == 3) return absl::OkStatus();
  return InvalidArgument("keras is ", options.keras, ", expected 2 or 3");
}

StatusOr<WeightValues> ValuesOf(Model& model) {
  WEFT_ASSIGN_OR_RETURN(std::vector<NamedWeight> weights, model.GetWeights());
  WeightValues values;
  for (NamedWeight& weight : weights) values[weight.name] = std::move(weight.value);
  return values;
}

std::string VersionOf(int keras) { return keras == 2 ? "2.15.0" : "3.0.0"; }

Json ModelJson(Model& model, int keras) {
  Network& network = model.network();
  return KerasObject(network.module(keras), network.class_name(), network.Config(keras));
}

StatusOr<std::string> ArchiveOf(Model& model, const SaveOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const WeightValues values, ValuesOf(model));
  storage::Hdf5Group root;
  StoreInArchive(model, values, options.keras, &root);
  storage::ArchiveFiles files;
  WEFT_ASSIGN_OR_RETURN(files["model.weights.h5"], storage::WriteHdf5(root));
  files["config.json"] = ModelJson(model, options.keras).Dump();
  Json metadata = Json::MakeObject();
  metadata.Set("keras_version", VersionOf(options.keras));
  metadata.Set("date_saved",
               absl::FormatTime("%Y-%m-%d@%H:%M:%S", absl::Now(), absl::UTCTimeZone()));
  files["metadata.json"] = metadata.Dump();
  return storage::WriteZip(files);
}

StatusOr<std::string> Hdf5Of(Model& model, const SaveOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const WeightValues values, ValuesOf(model));
  storage::Hdf5Group root;
  WEFT_RETURN_IF_ERROR(StoreByLayers(model, values, options.keras, &root.Make("model_weights")));
  root.attributes["backend"] = "tensorflow";
  root.attributes["keras_version"] = VersionOf(options.keras);
  Json config = ModelJson(model, options.keras);
  config.Erase("module");
  config.Erase("registered_name");
  root.attributes["model_config"] = config.Dump();
  return storage::WriteHdf5(root);
}

StatusOr<std::unique_ptr<Model>> ModelOfJson(absl::string_view text, const ModelOptions& options) {
  JsonLimits limits;
  limits.max_bytes = size_t{256} << 20;
  WEFT_ASSIGN_OR_RETURN(const Json json, Json::Parse(text, limits));
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Network> network, Network::FromJson(json));
  return Model::Of(std::move(network), options);
}

StatusOr<std::unique_ptr<Model>> LoadArchive(const std::string& bytes,
                                             const ModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const storage::ArchiveFiles files, storage::ReadZip(bytes));
  const auto config = files.find("config.json"), weights = files.find("model.weights.h5");
  if (config == files.end() || weights == files.end()) {
    return InvalidArgument("the archive holds no config.json and model.weights.h5");
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, ModelOfJson(config->second, options));
  WEFT_ASSIGN_OR_RETURN(const auto root, storage::ReadHdf5(weights->second));
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedWeight> values, ReadFromArchive(*model, *root));
  WEFT_RETURN_IF_ERROR(model->SetWeights(values));
  return model;
}

StatusOr<std::unique_ptr<Model>> LoadHdf5(const std::string& bytes, const ModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const auto root, storage::ReadHdf5(bytes));
  const std::string* config = root->FindText("model_config");
  const storage::Hdf5Group* weights = root->Find("model_weights");
  if (config == nullptr || weights == nullptr) {
    return InvalidArgument("the file holds weights alone, no model");
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, ModelOfJson(*config, options));
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedWeight> values, ReadByLayers(*model, *weights, {}));
  WEFT_RETURN_IF_ERROR(model->SetWeights(values));
  return model;
}

StatusOr<std::vector<NamedWeight>> ReadWeights(Model& model, const std::string& path,
                                               const LoadWeightsOptions& options) {
  RealFileSystem files;
  const bool archive = absl::EndsWith(path, ".keras");
  if (!archive && !IsHdf5(path)) return ReadObjects(model, path);
  WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(files, path, kMaxFile));
  if (archive) {
    WEFT_ASSIGN_OR_RETURN(storage::ArchiveFiles members, storage::ReadZip(bytes));
    bytes = std::move(members["model.weights.h5"]);
  }
  WEFT_ASSIGN_OR_RETURN(const auto root, storage::ReadHdf5(bytes));
  const storage::Hdf5Group* of_model = root->Find("model_weights");
  const storage::Hdf5Group* layers = of_model != nullptr ? of_model : root.get();
  if (layers->FindTexts("layer_names") != nullptr) return ReadByLayers(model, *layers, options);
  if (options.by_name) {
    return InvalidArgument("the file has no names of layers, by which weights could be found");
  }
  return ReadFromArchive(model, *root);
}

}  // namespace

Status SaveModel(Model& model, const std::string& path, const SaveOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckKeras(options));
  if (!IsHdf5(path) && !absl::EndsWith(path, ".keras")) {
    return InvalidArgument("A model's file must end in .keras, .h5 or .hdf5: '", path, "'");
  }
  const StatusOr<std::string> bytes =
      IsHdf5(path) ? Hdf5Of(model, options) : ArchiveOf(model, options);
  WEFT_RETURN_IF_ERROR(Annotate(bytes.status(), absl::StrCat("Model '", path, "'")));
  RealFileSystem files;
  return WriteFileAtomically(files, path, *bytes);
}

StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path, const ModelOptions& options) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path, kMaxFile));
  StatusOr<std::unique_ptr<Model>> model =
      IsHdf5(path) ? LoadHdf5(bytes, options) : LoadArchive(bytes, options);
  if (!model.ok()) return Annotate(model.status(), absl::StrCat("Model '", path, "'"));
  return model;
}

Status SaveWeights(Model& model, const std::string& path, const SaveOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckKeras(options));
  WEFT_ASSIGN_OR_RETURN(const WeightValues values, ValuesOf(model));
  if (!IsHdf5(path)) return SaveObjects(model, values, path);
  storage::Hdf5Group root;
  if (absl::EndsWith(path, ".weights.h5")) {
    StoreInArchive(model, values, options.keras, &root);
  } else {
    WEFT_RETURN_IF_ERROR(StoreByLayers(model, values, options.keras, &root));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, storage::WriteHdf5(root));
  RealFileSystem files;
  return WriteFileAtomically(files, path, bytes);
}

Status LoadWeights(Model& model, const std::string& path, const LoadWeightsOptions& options) {
  const StatusOr<std::vector<NamedWeight>> values = ReadWeights(model, path, options);
  if (!values.ok()) return Annotate(values.status(), absl::StrCat("Weights '", path, "'"));
  return model.SetWeights(*values);
}

}  // namespace weft::estimator
