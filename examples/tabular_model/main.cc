// SPDX-License-Identifier: Apache-2.0
// Learns prices of flats from numbers and a district: two inputs that meet in a graph of layers.
#include <cmath>
#include <cstdio>
#include <random>

#include "weft/models.h"

namespace keras = weft::estimator;
using weft::Tensor;

constexpr int kDistricts = 10, kNumbers = 3;

// Size, floor and age make the price, and districts in a way that no number tells.
keras::Examples MakeFlats(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> numbers, prices;
  std::vector<int32_t> districts;
  for (int i = 0; i < count; ++i) {
    const float size = 20 + 130 * uniform(random), floor = 10 * uniform(random);
    const float age = 100 * uniform(random);
    districts.push_back(static_cast<int32_t>(random() % kDistricts));
    const float liked = 1 + 0.5f * std::sin(3.0f * static_cast<float>(districts.back()));
    numbers.insert(numbers.end(), {size, floor, age});
    prices.push_back(liked * (0.02f * size + 0.05f * floor - 0.01f * age + 1));
  }
  return {{Tensor::FromSpan<float>({count, kNumbers}, numbers),
           Tensor::FromSpan<int32_t>({count, 1}, districts)},
          {Tensor::FromSpan<float>({count, 1}, prices)}};
}

weft::Status Learn(const std::string& path) {
  const keras::Symbol numbers = keras::Input({kNumbers}, weft::DType::kFloat, "numbers");
  const keras::Symbol district = keras::Input({1}, weft::DType::kInt32, "district");
  const keras::Symbol scaled =
      keras::Normalization({85, 5, 50}, {1400, 8.3, 833}, "scaled")(numbers);
  const keras::Symbol known = keras::Flatten()(keras::Embedding(kDistricts, 4)(district));
  keras::Symbol x = keras::Concatenate()({scaled, known});
  x = keras::Dense(32, {.activation = "relu"})(x);
  x = keras::Dense(16, {.activation = "relu", .kernel_regularizer = "l2"})(x);
  WEFT_ASSIGN_OR_RETURN(const auto model,
                        keras::Model::Make({numbers, district}, {keras::Dense(1)(x)}, {.seed = 5}));
  WEFT_RETURN_IF_ERROR(model->Compile({.optimizer = keras::Adam(keras::CosineDecay(0.01, 30 * 32)),
                                       .loss = {"huber"},
                                       .metrics = {"mae", "r2_score"}}));
  const keras::FitOptions fit = {.epochs = 30, .callbacks = {keras::Progress()}};
  WEFT_RETURN_IF_ERROR(model->Fit(MakeFlats(1000, 1), fit).status());
  WEFT_ASSIGN_OR_RETURN(const keras::Logs logs, model->Evaluate(MakeFlats(300, 2)));
  std::printf("R2 %.4f\n", keras::LogOf(logs, "r2_score"));
  return keras::SaveWeights(*model, path);
}

int main(int argc, char** argv) {
  const weft::Status status = Learn(argc > 1 ? argv[1] : "/tmp/flats.weights.h5");
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
