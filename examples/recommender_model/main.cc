// SPDX-License-Identifier: Apache-2.0
// Learns who clicks what: embeddings whose rows are spread over the parameter servers of a job.
//   weft run --ps 2 --workers 2 -- build/bin/recommender_model
#include <cmath>
#include <cstdio>
#include <random>

#include "weft/models.h"
#include "weft/weft.h"

namespace keras = weft::estimator;
using weft::Tensor;
constexpr int kUsers = 500, kItems = 300, kTraits = 3;

// Meetings of a user with an item, who clicks (1) the more surely the more their traits agree.
keras::Examples MakeMeetings(int count, unsigned seed) {
  std::mt19937 world(7), random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> traits((kUsers + kItems) * kTraits), clicks;
  for (float& trait : traits) trait = normal(world);
  std::vector<int32_t> users, items;
  for (int i = 0; i < count; ++i) {
    users.push_back(static_cast<int32_t>(random() % kUsers));
    items.push_back(static_cast<int32_t>(random() % kItems));
    const float* user = &traits[users.back() * kTraits];
    const float* item = &traits[(kUsers + items.back()) * kTraits];
    const float liking = user[0] * item[0] + user[1] * item[1] + user[2] * item[2];
    clicks.push_back(random() % 1000 < 1000 / (1 + std::exp(-3 * liking)) ? 1.0f : 0.0f);
  }
  return {
      {Tensor::FromSpan<int32_t>({count, 1}, users), Tensor::FromSpan<int32_t>({count, 1}, items)},
      {Tensor::FromSpan<float>({count, 1}, clicks)}};
}

weft::Status Learn(const weft::train::Task& task) {
  const keras::Symbol user = keras::Input({1}, weft::DType::kInt32, "user");
  const keras::Symbol item = keras::Input({1}, weft::DType::kInt32, "item");
  const auto rows = [](const keras::Symbol& ids, int of) {
    return keras::Flatten()(keras::Embedding(of, 8)(ids));
  };
  const keras::Symbol liking = keras::Dot(1)({rows(user, kUsers), rows(item, kItems)});
  keras::ModelOptions where = {.seed = 1, .target = task.target, .device = task.Device()};
  where.num_ps = task.num_ps;
  where.split_from = 1024;  // bytes: these tables are small, and spread all the same
  where.is_chief = task.is_chief;
  const keras::Symbol click = keras::Activation("sigmoid")(liking);
  WEFT_ASSIGN_OR_RETURN(const auto model, keras::Model::Make({user, item}, {click}, where));
  WEFT_RETURN_IF_ERROR(model->Compile(
      {.optimizer = keras::Adam(0.01), .loss = {"binary_crossentropy"}, .metrics = {"auc"}}));
  const keras::Examples unseen = MakeMeetings(4000, 99);
  keras::FitOptions fit = {.batch_size = 256, .epochs = 8, .validation_data = &unseen};
  if (task.is_chief) fit.callbacks = {keras::Progress()};
  return model->Fit(MakeMeetings(50000, task.worker + 1u), fit).status();
}

int main() {
  const weft::Status status = weft::train::RunTask(Learn);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
