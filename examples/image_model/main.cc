// SPDX-License-Identifier: Apache-2.0
// Learns handwritten digits with layers, stops when it gets no better, and keeps a file for Keras.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "digits/digits_data.h"
#include "weft/models.h"

namespace keras = weft::estimator;
using weft::Tensor;

// Pixels as [n, 8, 8, 1].
weft::StatusOr<keras::Examples> AsImages(const digits::Set& set) {
  WEFT_ASSIGN_OR_RETURN(Tensor images, set.images.Reshaped({set.images.dim(0), 8, 8, 1}));
  return keras::Examples{{images}, {set.labels}};
}

weft::Status Learn(const std::string& data, const std::string& path, int epochs) {
  WEFT_ASSIGN_OR_RETURN(const digits::Data digits, digits::Load(data));
  WEFT_ASSIGN_OR_RETURN(const keras::Examples train, AsImages(digits.train));
  WEFT_ASSIGN_OR_RETURN(const keras::Examples test, AsImages(digits.test));

  WEFT_ASSIGN_OR_RETURN(
      const auto model,
      keras::Model::Sequential(keras::Input({8, 8, 1}),
                               {keras::Conv2D(24, 3, {.padding = "same", .activation = "relu"}),
                                keras::BatchNormalization(), keras::MaxPooling2D(),
                                keras::Conv2D(48, 3, {.padding = "same", .activation = "relu"}),
                                keras::GlobalAveragePooling2D(), keras::Dropout(0.2),
                                keras::Dense(digits::kClasses, {.activation = "softmax"})},
                               {.seed = 1}));
  std::printf("%s", model->Summary().c_str());
  WEFT_RETURN_IF_ERROR(model->Compile({.optimizer = keras::Adam(0.005),
                                       .loss = {"sparse_categorical_crossentropy"},
                                       .metrics = {"accuracy"}}));
  WEFT_RETURN_IF_ERROR(
      model
          ->Fit(train, {.epochs = epochs,
                        .validation_split = 0.1,
                        .callbacks = {keras::Progress(), keras::EarlyStopping({.patience = 4})}})
          .status());
  WEFT_ASSIGN_OR_RETURN(const keras::Logs logs, model->Evaluate(test));
  std::printf("Test accuracy: %.4f\n", keras::LogOf(logs, "accuracy"));
  return keras::SaveModel(*model, path);
}

int main(int argc, char** argv) {
  std::string data = "examples/digits/digits.csv", path = "/tmp/digits.keras";
  int epochs = 12;
  CLI::App app("Learns digits");
  app.add_option("--data", data, "digits.csv");
  app.add_option("--model", path, "Where the model goes");
  app.add_option("--epochs", epochs, "At most this often through the data");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Learn(data, path, epochs);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
