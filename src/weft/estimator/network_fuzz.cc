// SPDX-License-Identifier: Apache-2.0
// A model's configuration with changes: an error, or a model that writes itself as it was read.
#include <cstdlib>
#include <string>

#include "weft/estimator/model.h"
#include "weft/estimator/network.h"

namespace {

constexpr char kModel[] =
    R"({"class_name":"Functional","config":{"name":"m","layers":[)"
    R"({"class_name":"InputLayer","config":{"batch_shape":[null,4,6],"dtype":"float32","name":"a"},)"
    R"("name":"a","inbound_nodes":[]},{"class_name":"LSTM","config":{"units":3,"return_sequences":true},)"
    R"("name":"b","inbound_nodes":[[["a",0,0,{}]]]},{"class_name":"Dense","config":{"units":2},)"
    R"("name":"c","inbound_nodes":[[["b",0,0,{}]]]}],"input_layers":[["a",0,0]],"output_layers":[["c",0,0]]}})";

void Read(const std::string& text) {
  const auto json = weft::Json::Parse(text);
  if (!json.ok()) return;
  const auto network = weft::estimator::Network::FromJson(*json);
  if (!network.ok()) return;
  weft::Json again = weft::Json::MakeObject();
  again.Set("class_name", (*network)->class_name());
  again.Set("config", (*network)->Config(3));
  if (!weft::estimator::Network::FromJson(again).ok()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Read(std::string(reinterpret_cast<const char*>(data), size));
  std::string text = kModel;
  for (size_t i = 0; i + 1 < size && i < 8; i += 2) {
    text[(data[i] * 7 + data[i + 1]) % text.size()] = static_cast<char>(data[i + 1]);
  }
  Read(text);
  return 0;
}
