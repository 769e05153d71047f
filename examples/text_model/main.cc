// SPDX-License-Identifier: Apache-2.0
// Learns what short remarks mean, where "not" turns the next word around.
#include <cstdio>
#include <random>

#include "weft/models.h"

namespace keras = weft::estimator;
using weft::Tensor;
constexpr const char* kWords[] = {"",     "fine", "great", "lovely", "bad", "dull",
                                  "poor", "not",  "the",   "food",   "was", "room"};  // 0: none
constexpr int kLength = 8, kNumWords = 12, kNot = 7;
// Remarks of random words; liked (1) if more is praised than blamed.
keras::Examples MakeRemarks(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> words(count * kLength, 0);
  std::vector<float> liked(count);
  for (int i = 0; i < count; ++i) {
    int praise = 0;
    bool turned = false;
    const int length = 3 + static_cast<int>(random() % (kLength - 2));
    for (int at = 0; at < length; ++at) {
      const int word = 1 + static_cast<int>(random() % (kNumWords - 1));
      words[i * kLength + at] = word;
      if (word < kNot) praise += (word <= 3) != turned ? 1 : -1;
      turned = word == kNot;
    }
    liked[i] = praise > 0 ? 1.0f : 0.0f;
  }
  return {{Tensor::FromSpan<int32_t>({count, kLength}, words)},
          {Tensor::FromSpan<float>({count, 1}, liked)}};
}

weft::Status Learn() {
  WEFT_ASSIGN_OR_RETURN(const auto model, keras::Model::Sequential(
                                              keras::Input({kLength}, weft::DType::kInt32),
                                              {keras::Embedding(kNumWords, 8, {.mask_zero = true}),
                                               keras::Bidirectional(keras::LSTM(12)),
                                               keras::Dense(1, {.activation = "sigmoid"})},
                                              {.seed = 3}));
  WEFT_RETURN_IF_ERROR(model->Compile({.optimizer = keras::Adam(0.02),
                                       .loss = {"binary_crossentropy"},
                                       .metrics = {"accuracy", "auc"}}));
  const keras::FitOptions fit = {.batch_size = 64, .epochs = 6, .callbacks = {keras::Progress()}};
  WEFT_RETURN_IF_ERROR(model->Fit(MakeRemarks(1500, 1), fit).status());
  WEFT_ASSIGN_OR_RETURN(const keras::Logs logs, model->Evaluate(MakeRemarks(500, 2)));
  std::printf("Test accuracy: %.4f\n", keras::LogOf(logs, "accuracy"));
  const int32_t remark[kLength] = {8, 9, 10, kNot, 4, 2};
  WEFT_ASSIGN_OR_RETURN(const auto liked,
                        model->Predict({Tensor::FromSpan<int32_t>({1, kLength}, remark)}));
  for (const int32_t word : remark) std::printf("%s ", kWords[word]);
  std::printf("-> liked: %.3f\n", liked[0].span<float>()[0]);
  return weft::Status();
}

int main() {
  const weft::Status status = Learn();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
