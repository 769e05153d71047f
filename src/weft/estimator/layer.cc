// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/layer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::estimator {

Json Layer::Config(int keras) {
  ConfigWriter writer(keras);
  writer.Field("name", name_);
  writer.Field("trainable", trainable_);
  Fields(writer);
  return writer.Take();
}

Status Layer::ReadConfig(const Json& config) {
  ConfigReader reader(config);
  reader.Field("name", name_);
  reader.Field("trainable", trainable_);
  Fields(reader);
  return reader.status();
}

Symbol LayerRef::operator()(const std::vector<Symbol>& inputs,
                            const CallArguments& arguments) const {
  return Symbol(std::make_shared<Symbol::Origin>(Symbol::Origin{*this, inputs, arguments}));
}

Symbol Input(const std::vector<int64_t>& shape, DType dtype, const std::string& name,
             int64_t batch) {
  PartialShape whole{batch < 0 ? -1 : batch};
  for (const int64_t size : shape) whole.AddDim(size < 0 ? -1 : size);
  LayerRef layer(std::make_shared<InputLayer>(std::move(whole), dtype));
  layer->set_name(name);
  return Symbol(std::make_shared<Symbol::Origin>(Symbol::Origin{layer, {}, {}}));
}

std::vector<Value> InputLayer::Call(LayerCall& call, const std::vector<Value>&) {
  return {{call.b().Op("Placeholder", {}, {{"dtype", dtype_}, {"shape", shape_}}, "input"), {}}};
}

}  // namespace weft::estimator
