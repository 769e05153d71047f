// SPDX-License-Identifier: Apache-2.0
// Who buys? A deep classifier of tabular data. The same program trains alone and as a job:
//   weft run --chief --ps 1 --workers 1 --evaluator -- build/bin/estimator DIR
#include <cstdio>
#include <random>

#include "weft/estimator.h"

namespace est = weft::estimator;
using weft::Tensor;
using weft::train::Dataset;

// Visitors whose age, visits and city say whether they buy.
est::InputFn Visitors(unsigned seed, int64_t count) {
  return [=](const est::InputContext& input) {
    std::mt19937 random(seed + static_cast<unsigned>(input.worker));
    const std::vector<std::string> all = {"Aachen", "Bonn", "Chur", "Delft"};
    std::vector<float> ages;
    std::vector<int64_t> visits, buys;
    std::vector<std::string> cities;
    for (int64_t i = 0; i < count; ++i) {
      ages.push_back(static_cast<float>(18 + random() % 60));
      visits.push_back(static_cast<int64_t>(random() % 8));
      cities.push_back(all[random() % all.size()]);
      const bool likes = cities.back() == "Bonn" || cities.back() == "Chur";
      buys.push_back(ages.back() / 20 + static_cast<float>(visits.back()) > (likes ? 4 : 7));
    }
    weft::GraphBuilder& b = input.b();
    Dataset rows = Dataset::Slices(b, {b.Constant(Tensor::FromSpan<float>({count}, ages)),
                                       b.Constant(Tensor::FromSpan<int64_t>({count}, visits)),
                                       b.Constant(Tensor::FromSpan<std::string>({count}, cities)),
                                       b.Constant(Tensor::FromSpan<int64_t>({count}, buys))});
    if (input.mode == est::Mode::kTrain) rows = rows.Shuffle(count, {.seed = 1}).Repeat();
    return est::BatchesOf(input, rows.Batch(64), {"age", "visits", "city", "buys"}, "buys");
  };
}

int main(int argc, char** argv) {
  const auto scaled = [](weft::GraphBuilder& b, weft::Endpoint x) {
    return b.Op("Mul", {x, b.Scalar<float>(0.02f)});
  };
  const std::vector<est::Column> columns = {
      est::NumericColumn("age", {.normalizer = scaled}),
      est::IndicatorColumn(est::CategoricalColumnWithIdentity("visits", 8)),
      est::EmbeddingColumn(est::CategoricalColumnWithHashBucket("city", 50), 4)};
  est::RunConfig config{.model_dir = argc > 1 ? argv[1] : "/tmp/weft-estimator", .seed = 1};
  config.save_checkpoints = weft::train::Every::Steps(200);
  est::Estimator classifier = est::DNNClassifier(
      {.hidden_units = {32, 16}, .feature_columns = columns}, {.config = config});
  const auto serving = est::ParsingServingInput(est::MakeExampleSpec(columns));
  const auto result =
      est::TrainAndEvaluate(classifier, {.input = Visitors(1, 2000), .max_steps = 600},
                            {.input = Visitors(100, 500),
                             .exporters = {est::FinalExporter("buyers", serving)},
                             .start_delay = absl::ZeroDuration(),
                             .throttle = absl::ZeroDuration()});
  if (!result.ok()) std::fprintf(stderr, "%s\n", std::string(result.status().message()).c_str());
  if (!result.ok()) return 1;
  for (const auto& [name, value] : *result) std::printf("%s: %.4f\n", name.c_str(), value);
}
