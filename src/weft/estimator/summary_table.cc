// SPDX-License-Identifier: Apache-2.0
// The table that Model::Summary gives.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "weft/estimator/model.h"

namespace weft::estimator {
namespace {

std::string ShapeText(const std::vector<PartialShape>& shapes) {
  std::string text;
  for (const PartialShape& shape : shapes) {
    if (!text.empty()) text += ", ";
    text += "(";
    for (int i = 0; i < shape.rank(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ", ",
                      shape.dim(i) < 0 ? std::string("None") : absl::StrCat(shape.dim(i)));
    }
    text += shape.rank() == 1 ? ",)" : ")";
  }
  return text;
}

std::string Grouped(int64_t count) {
  std::string digits = absl::StrCat(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

}  // namespace

std::string Model::Summary() const {
  int64_t trainable = 0, fixed = 0;
  std::map<std::string, int64_t> of_layer;
  for (const Weight& weight : parts_.weights) {
    const int64_t count = weight.variable.shape.num_elements();
    (weight.variable.trainable ? trainable : fixed) += count;
    of_layer[weight.name.substr(0, weight.name.find('/'))] += count;
  }
  const std::string name = options_.name.empty() ? network_->class_name() : options_.name;
  const std::string line(65, '_');
  std::string text = absl::StrCat("Model: \"", name, "\"\n", line, "\n");
  text += absl::StrFormat(" %-28s%-26s%s\n%s\n", "Layer (type)", "Output Shape", "Param #",
                          std::string(65, '='));
  for (const LayerRef& layer : network_->layers()) {
    std::string shape;
    for (const NetworkCall& call : network_->calls()) {
      if (call.layer.get() == layer.get() && shape.empty()) shape = ShapeText(call.shapes);
    }
    text += absl::StrFormat(" %-28s%-26s%s\n",
                            absl::StrCat(layer->name(), " (", layer->class_name(), ")"), shape,
                            Grouped(of_layer[layer->name()]));
  }
  absl::StrAppend(&text, std::string(65, '='), "\nTotal params: ", Grouped(trainable + fixed),
                  "\nTrainable params: ", Grouped(trainable),
                  "\nNon-trainable params: ", Grouped(fixed), "\n", line, "\n");
  return text;
}

}  // namespace weft::estimator
