// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/weight_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/estimator/keras_files.h"

namespace weft::estimator {
namespace {

// HDF5 attributes are short: Keras splits longer lists.
constexpr size_t kMaxTexts = 3000;

std::string LayerOf(const Weight& weight) { return weight.name.substr(0, weight.name.find('/')); }

void SetTexts(const std::string& name, const std::vector<std::string>& texts,
              storage::Hdf5Group* group) {
  if (texts.size() <= kMaxTexts) {
    group->attributes[name] = texts;
    return;
  }
  for (size_t part = 0; part * kMaxTexts < texts.size(); ++part) {
    const auto begin = texts.begin() + static_cast<ptrdiff_t>(part * kMaxTexts);
    const auto end = part * kMaxTexts + kMaxTexts < texts.size()
                         ? begin + static_cast<ptrdiff_t>(kMaxTexts)
                         : texts.end();
    group->attributes[absl::StrCat(name, part)] = std::vector<std::string>(begin, end);
  }
}

// Those of attentions have an underscore in Keras 2.
std::string FolderFor(const std::string& store, int keras) {
  if (keras != 2) return store;
  for (const char* part : {"query_dense", "key_dense", "value_dense", "output_dense"}) {
    if (absl::EndsWith(store, absl::StrCat("/", part))) {
      return absl::StrCat(store.substr(0, store.size() - std::string(part).size()), "_", part);
    }
  }
  return store;
}

}  // namespace

std::vector<LayerWeights> WeightsByLayer(Model& model) {
  std::vector<LayerWeights> layers;
  for (const LayerRef& layer : model.network().layers()) {
    LayerWeights one{
        layer->name(), absl::StrCat("Layer '", layer->name(), "' (", layer->class_name(), ")"), {}};
    for (const bool state : {false, true}) {
      for (const Weight& weight : model.weights()) {
        if (weight.is_state == state && weight.is_first() && LayerOf(weight) == layer->name()) {
          one.weights.push_back(&weight);
        }
      }
    }
    layers.push_back(std::move(one));
  }
  return layers;
}

std::map<const Weight*, ArchivePlace> ArchivePlaces(Model& model, int keras) {
  std::map<const Weight*, ArchivePlace> places;
  std::map<std::string, int> counts;
  for (const bool state : {false, true}) {
    for (const Weight& weight : model.weights()) {
      if (weight.is_state != state || !weight.is_first()) continue;
      const auto place_in = [&](const std::string& folder) {
        return absl::StrCat(folder, "/vars/", counts[folder]++);
      };
      ArchivePlace& place = places[&weight];
      place.place = place_in(FolderFor(weight.store, keras));
      if (!weight.also_in.empty()) place.also = place_in(weight.also_in);
    }
  }
  return places;
}

StatusOr<NamedWeight> Fitting(const Weight& weight, const Tensor& value,
                              const std::string& description) {
  const train::Variable& v = weight.variable;
  if (value.shape() != weight.whole_shape()) {
    return InvalidArgument(description, ": weight '", weight.name, "' has shape ",
                           weight.whole_shape().ToString(), ", the file's ",
                           value.shape().ToString());
  }
  if (value.dtype() == v.dtype) return NamedWeight{weight.name, value};
  if (value.dtype() == DType::kDouble && v.dtype == DType::kFloat) {
    WEFT_ASSIGN_OR_RETURN(Tensor narrow, Tensor::Allocate(DType::kFloat, value.shape()));
    std::transform(value.data<double>(), value.data<double>() + value.num_elements(),
                   narrow.data<float>(), [](double x) { return static_cast<float>(x); });
    return NamedWeight{weight.name, std::move(narrow)};
  }
  return InvalidArgument(description, ": weight '", weight.name, "' is ", DTypeName(v.dtype),
                         ", the file's ", DTypeName(value.dtype()));
}

void StoreInArchive(Model& model, const WeightValues& values, int keras, storage::Hdf5Group* root) {
  root->Make("vars");
  for (const std::string& folder : model.network().Folders()) {
    root->Make(absl::StrCat("layers/", folder, "/vars"));
  }
  for (const auto& [weight, places] : ArchivePlaces(model, keras)) {
    for (const std::string& place : {places.place, places.also}) {
      if (place.empty()) continue;
      const size_t slash = place.rfind('/');
      root->Make(place.substr(0, slash)).datasets[place.substr(slash + 1)] =
          values.at(weight->name);
    }
  }
}

StatusOr<std::vector<NamedWeight>> ReadFromArchive(Model& model, const storage::Hdf5Group& root) {
  const auto new_places = ArchivePlaces(model, 3), old_places = ArchivePlaces(model, 2);
  std::vector<NamedWeight> read;
  for (const LayerWeights& layer : WeightsByLayer(model)) {
    for (const Weight* weight : layer.weights) {
      const std::string& place = new_places.at(weight).place;
      const Tensor* value = root.FindDataset(place);
      if (value == nullptr) value = root.FindDataset(old_places.at(weight).place);
      if (value == nullptr) {
        return NotFound(layer.description, ": the file has no '", place, "' for weight '",
                        weight->name, "'");
      }
      WEFT_ASSIGN_OR_RETURN(NamedWeight fitting, Fitting(*weight, *value, layer.description));
      read.push_back(std::move(fitting));
    }
  }
  return read;
}

Status StoreByLayers(Model& model, const WeightValues& values, int keras,
                     storage::Hdf5Group* root) {
  std::vector<std::string> layer_names;
  for (const LayerWeights& layer : WeightsByLayer(model)) {
    layer_names.push_back(layer.layer);
    storage::Hdf5Group& group = root->Make(layer.layer);
    std::vector<std::string> names;
    for (const Weight* weight : layer.weights) {
      names.push_back(keras == 2 ? weight->name + ":0" : weight->name);
      const size_t slash = names.back().rfind('/');
      group.Make(names.back().substr(0, slash)).datasets[names.back().substr(slash + 1)] =
          values.at(weight->name);
    }
    SetTexts("weight_names", names, &group);
  }
  SetTexts("layer_names", layer_names, root);
  root->Make("top_level_model_weights").attributes["weight_names"] = std::vector<std::string>();
  root->attributes["backend"] = "tensorflow";
  root->attributes["keras_version"] = keras == 2 ? "2.15.0" : "3.0.0";
  return absl::OkStatus();
}

namespace {

// The datasets of one layer in the file.
StatusOr<std::vector<const Tensor*>> FileWeights(const storage::Hdf5Group& root,
                                                 const std::string& layer) {
  const storage::Hdf5Group* group = root.Find(layer);
  if (group == nullptr) return DataLoss("the file lists layer '", layer, "' but has none");
  std::vector<const Tensor*> weights;
  const auto names = group->FindTexts("weight_names");
  if (names == nullptr) return weights;
  for (const std::string& name : *names) {
    const Tensor* value = group->FindDataset(name);
    if (value == nullptr) {
      return DataLoss("the file lists weight '", name, "' of layer '", layer, "' but has none");
    }
    weights.push_back(value);
  }
  return weights;
}

Status TakeLayer(const LayerWeights& layer, const std::vector<const Tensor*>& from,
                 std::vector<NamedWeight>* read) {
  if (layer.weights.size() != from.size()) {
    return InvalidArgument(layer.description, " has ", layer.weights.size(),
                           " weights, the file's ", from.size());
  }
  std::vector<NamedWeight> fitting;
  for (size_t i = 0; i < from.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(NamedWeight one, Fitting(*layer.weights[i], *from[i], layer.description));
    fitting.push_back(std::move(one));
  }
  read->insert(read->end(), fitting.begin(), fitting.end());
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<NamedWeight>> ReadByLayers(Model& model, const storage::Hdf5Group& root,
                                                const LoadWeightsOptions& options) {
  const auto names = root.FindTexts("layer_names");
  if (names == nullptr) return InvalidArgument("the file has no names of layers");
  std::vector<LayerWeights> layers = WeightsByLayer(model);
  std::vector<NamedWeight> read;
  if (options.by_name) {
    for (const LayerWeights& layer : layers) {
      if (std::find(names->begin(), names->end(), layer.layer) == names->end()) continue;
      WEFT_ASSIGN_OR_RETURN(const std::vector<const Tensor*> from, FileWeights(root, layer.layer));
      const Status taken = TakeLayer(layer, from, &read);
      if (!taken.ok() && !options.skip_mismatch) return taken;
    }
    return read;
  }
  std::vector<std::vector<const Tensor*>> from;
  for (const std::string& name : *names) {
    WEFT_ASSIGN_OR_RETURN(std::vector<const Tensor*> weights, FileWeights(root, name));
    if (!weights.empty()) from.push_back(std::move(weights));
  }
  layers.erase(std::remove_if(layers.begin(), layers.end(),
                              [](const LayerWeights& layer) { return layer.weights.empty(); }),
               layers.end());
  if (layers.size() != from.size()) {
    return InvalidArgument("The model has ", layers.size(), " layers with weights, the file ",
                           from.size());
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const Status taken = TakeLayer(layers[i], from[i], &read);
    if (!taken.ok() && !options.skip_mismatch) return taken;
  }
  return read;
}

}  // namespace weft::estimator
