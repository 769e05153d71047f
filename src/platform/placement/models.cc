// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/models.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/placement/model_builder.h"

namespace weft::platform {
namespace {

// 784-300-100-10, as the first programs for MNIST.
StepGraph Mlp(int64_t batch) {
  ModelBuilder model("mlp", batch);
  const auto rows = static_cast<double>(batch);
  int x = model.Input("images", rows * 784);
  double width = 784;
  for (const double next : {300.0, 100.0, 10.0}) {
    x = model.Dense(x, rows, width, next);
    x = model.Op("Relu", {x}, -1, rows * next, rows * next);
    width = next;
  }
  return model.Train({x});
}

// Simonyan and Zisserman, ICLR 2015: configuration D.
StepGraph Vgg16(int64_t batch) {
  ModelBuilder model("vgg16", batch);
  const auto rows = static_cast<double>(batch);
  int x = model.Input("images", rows * 224 * 224 * 3);
  double size = 224;
  double in = 3;
  for (const auto& [count, out] :
       std::vector<std::pair<int, double>>{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    for (int i = 0; i < count; ++i, in = out) x = model.Convolution(x, size, in, out, 3, 1);
    size /= 2;
    x = model.Op("MaxPool", {x}, -1, rows * size * size * in * 4, rows * size * size * in);
  }
  x = model.Dense(x, rows, size * size * in, 4096);
  x = model.Dense(x, rows, 4096, 4096);
  return model.Train({model.Dense(x, rows, 4096, 1000)});
}

// He et al., CVPR 2016.
StepGraph ResNet50(int64_t batch) {
  ModelBuilder model("resnet50", batch);
  const auto rows = static_cast<double>(batch);
  int x = model.Input("images", rows * 224 * 224 * 3);
  x = model.Convolution(x, 224, 3, 64, 7, 2);
  x = model.Op("MaxPool", {x}, -1, rows * 56 * 56 * 64 * 9, rows * 56 * 56 * 64);
  double size = 56;
  double in = 64;
  for (const auto& [count, width] :
       std::vector<std::pair<int, double>>{{3, 64}, {4, 128}, {6, 256}, {3, 512}}) {
    for (int i = 0; i < count; ++i) {
      const double stride = i == 0 && width > 64 ? 2 : 1;
      int y = model.Convolution(x, size, in, width, 1, 1);
      y = model.Convolution(y, size, width, width, 3, stride);
      y = model.Convolution(y, size / stride, width, 4 * width, 1, 1);
      if (i == 0) x = model.Convolution(x, size, in, 4 * width, 1, stride);
      size /= stride;
      in = 4 * width;
      const double elements = rows * size * size * in;
      x = model.Op("AddRelu", {x, y}, -1, 2 * elements, elements);
    }
  }
  x = model.Op("Mean", {x}, -1, rows * size * size * in, rows * in);
  return model.Train({model.Dense(x, rows, in, 1000)});
}

// Nine modules of four branches, as GoogLeNet has (Szegedy et al., CVPR 2015).
StepGraph Inception(int64_t batch) {
  ModelBuilder model("inception", batch);
  const auto rows = static_cast<double>(batch);
  int x = model.Convolution(model.Input("images", rows * 224 * 224 * 3), 224, 3, 64, 7, 4);
  x = model.Convolution(x, 56, 64, 192, 3, 2);
  double size = 28;
  double in = 192;
  for (int i = 0; i < 9; ++i) {
    if (i == 2 || i == 7) {
      size /= 2;
      x = model.Op("MaxPool", {x}, -1, rows * size * size * in * 9, rows * size * size * in);
    }
    const double width = 64 + 16.0 * i;
    const int a = model.Convolution(x, size, in, width, 1, 1);
    const int b = model.Convolution(model.Convolution(x, size, in, width, 1, 1), size, width,
                                    2 * width, 3, 1);
    const int c = model.Convolution(model.Convolution(x, size, in, width / 4, 1, 1), size,
                                    width / 4, width / 2, 5, 1);
    const int d = model.Convolution(x, size, in, width / 2, 1, 1);
    in = 4 * width;
    const double elements = rows * size * size * in;
    x = model.Op("ConcatV2", {a, b, c, d}, -1, elements, elements);
  }
  x = model.Op("Mean", {x}, -1, rows * size * size * in, rows * in);
  return model.Train({model.Dense(x, rows, in, 1000)});
}

// A language model of two layers, unrolled (Zaremba et al., 2014: the medium one).
StepGraph Lstm(int64_t batch) {
  constexpr int kSteps = 20;
  constexpr double kWidth = 650;
  constexpr double kWords = 10000;
  ModelBuilder model("lstm", batch);
  const auto rows = static_cast<double>(batch);
  const int words = model.Variable("embedding", kWords * kWidth);
  const int softmax = model.Variable("softmax", kWidth * kWords + kWords);
  int cells[2];
  int states[2];
  for (int layer = 0; layer < 2; ++layer) {
    cells[layer] = model.Variable(absl::StrCat("cell_", layer), 2 * kWidth * 4 * kWidth);
    states[layer] = model.Input(absl::StrCat("state_", layer), rows * kWidth);
  }
  std::vector<int> outputs;
  for (int step = 0; step < kSteps; ++step) {
    const int input = model.Input(absl::StrCat("words_", step), rows);
    int x = model.Lookup({input}, words, rows * kWidth);
    for (int layer = 0; layer < 2; ++layer) {
      x = model.Op("MatMul", {x, states[layer]}, cells[layer], 2 * rows * 2 * kWidth * 4 * kWidth,
                   rows * 4 * kWidth);
      x = model.Op("LstmGates", {x}, -1, rows * kWidth * 30, rows * kWidth);
      states[layer] = x;
    }
    outputs.push_back(model.DenseWith(x, softmax, rows, kWidth, kWords));
  }
  return model.Train(outputs);
}

// Vaswani et al., NIPS 2017: the base model's encoder, heads two by two.
StepGraph Transformer(int64_t batch) {
  constexpr double kWidth = 512;
  constexpr double kLength = 128;
  constexpr int kParts = 4;
  ModelBuilder model("transformer", batch);
  const double rows = static_cast<double>(batch) * kLength;
  const int words = model.Variable("embedding", 32000 * kWidth);
  int x = model.Lookup({model.Input("words", rows)}, words, rows * kWidth);
  for (int layer = 0; layer < 6; ++layer) {
    std::vector<int> heads;
    for (int part = 0; part < kParts; ++part) {
      const double width = kWidth / kParts;
      const int q = model.Dense(x, rows, kWidth, width);
      const int k = model.Dense(x, rows, kWidth, width);
      const int v = model.Dense(x, rows, kWidth, width);
      const double scores = rows * kLength * 2;
      const int s = model.Op("BatchMatMul", {q, k}, -1, 2 * rows * kLength * width, scores);
      const int p = model.Op("Softmax", {s}, -1, 5 * scores, scores);
      heads.push_back(
          model.Op("BatchMatMul", {p, v}, -1, 2 * rows * kLength * width, rows * width));
    }
    int y = model.Op("ConcatV2", heads, -1, rows * kWidth, rows * kWidth);
    y = model.Dense(y, rows, kWidth, kWidth);
    x = model.Op("AddNorm", {x, y}, -1, 8 * rows * kWidth, rows * kWidth);
    y = model.Dense(x, rows, kWidth, 4 * kWidth);
    y = model.Op("Relu", {y}, -1, rows * 4 * kWidth, rows * 4 * kWidth);
    y = model.Dense(y, rows, 4 * kWidth, kWidth);
    x = model.Op("AddNorm", {x, y}, -1, 8 * rows * kWidth, rows * kWidth);
  }
  return model.Train({model.Dense(x, rows, kWidth, 32000)});
}

int HiddenLayers(ModelBuilder* model, int x, double rows, double in,
                 const std::vector<double>& widths) {
  for (const double width : widths) {
    x = model->Dense(x, rows, in, width);
    x = model->Op("Relu", {x}, -1, rows * width, rows * width);
    in = width;
  }
  return model->Dense(x, rows, in, 1);
}

// Cheng et al., DLRS 2016: eight tables for the deep part, crosses for the wide one.
StepGraph WideAndDeep(int64_t batch) {
  ModelBuilder model("wide_and_deep", batch);
  const auto rows = static_cast<double>(batch);
  std::vector<int> columns;
  for (int i = 0; i < 8; ++i) {
    const int ids = model.Input(absl::StrCat("ids_", i), rows);
    columns.push_back(
        model.Lookup({ids}, model.Variable(absl::StrCat("table_", i), 100000 * 32), rows * 32));
  }
  std::vector<int> logits;
  for (int i = 0; i < 4; ++i) {
    const int ids = model.Input(absl::StrCat("crosses_", i), rows * 4);
    const int row =
        model.Lookup({ids}, model.Variable(absl::StrCat("wide_", i), 1000000), rows * 4);
    logits.push_back(model.Op("Sum", {row}, -1, rows * 4, rows));
  }
  const int x = model.Op("ConcatV2", columns, -1, rows * 256, rows * 256);
  logits.push_back(HiddenLayers(&model, x, rows, 256, {1024, 512, 256}));
  return model.Train(logits);
}

// Guo et al., IJCAI 2017, with the 26 tables of Criteo's records.
StepGraph DeepFm(int64_t batch) {
  constexpr double kWidth = 16;
  ModelBuilder model("deepfm", batch);
  const auto rows = static_cast<double>(batch);
  std::vector<int> fields;
  std::vector<int> logits;
  for (int i = 0; i < 26; ++i) {
    const double words = std::pow(10.0, 3 + i % 4);
    const int ids = model.Input(absl::StrCat("ids_", i), rows);
    const int table = model.Variable(absl::StrCat("table_", i), words * (kWidth + 1));
    fields.push_back(model.Lookup({ids}, table, rows * (kWidth + 1)));
  }
  const double width = 26 * kWidth;
  logits.push_back(model.Op("Interactions", fields, -1, rows * width * 6, rows));
  const int dense = model.Dense(model.Input("dense", rows * 13), rows, 13, kWidth);
  fields.push_back(dense);
  const int x = model.Op("ConcatV2", fields, -1, rows * (width + kWidth), rows * (width + kWidth));
  logits.push_back(HiddenLayers(&model, x, rows, width + kWidth, {400, 400, 400}));
  return model.Train(logits);
}

// A layer of eight experts between two others, each for an eighth of the rows, three times.
StepGraph MixtureOfExperts(int64_t batch) {
  constexpr double kWidth = 1024;
  constexpr int kExperts = 8;
  ModelBuilder model("mixture_of_experts", batch);
  const double rows = static_cast<double>(batch) * 64;
  int x = model.Input("rows", rows * kWidth);
  for (int layer = 0; layer < 3; ++layer) {
    x = model.Dense(x, rows, kWidth, kWidth);
    const int gate = model.Dense(x, rows, kWidth, kExperts);
    std::vector<int> parts;
    for (int i = 0; i < kExperts; ++i) {
      const double share = rows / kExperts;
      int y = model.Op("DynamicPartition", {x, gate}, -1, rows, share * kWidth);
      y = model.Dense(y, share, kWidth, 4 * kWidth);
      parts.push_back(model.Dense(y, share, 4 * kWidth, kWidth));
    }
    x = model.Op("DynamicStitch", parts, -1, rows * kWidth, rows * kWidth);
  }
  return model.Train({x});
}

// Ronneberger et al., MICCAI 2015, on 128 by 128.
StepGraph UNet(int64_t batch) {
  ModelBuilder model("unet", batch);
  const auto rows = static_cast<double>(batch);
  int x = model.Input("images", rows * 128 * 128 * 3);
  std::vector<int> left;
  double size = 128;
  double in = 3;
  for (double width = 64; width <= 512; width *= 2) {
    x = model.Convolution(x, size, in, width, 3, 1);
    x = model.Convolution(x, size, width, width, 3, 1);
    left.push_back(x);
    in = width;
    size /= 2;
    x = model.Op("MaxPool", {x}, -1, rows * size * size * in * 4, rows * size * size * in);
  }
  x = model.Convolution(x, size, in, 1024, 3, 1);
  in = 1024;
  for (double width = 512; width >= 64; width /= 2) {
    size *= 2;
    const double elements = rows * size * size * width;
    x = model.Op("ResizeNearest", {x}, -1, rows * size * size * in, rows * size * size * in);
    x = model.Convolution(x, size, in, width, 1, 1);
    x = model.Op("ConcatV2", {x, left.back()}, -1, 2 * elements, 2 * elements);
    left.pop_back();
    x = model.Convolution(x, size, 2 * width, width, 3, 1);
    x = model.Convolution(x, size, width, width, 3, 1);
    in = width;
  }
  return model.Train({model.Convolution(x, size, in, 2, 1, 1)});
}

// Users and items, each with tables and layers of their own; the product of both is the score.
StepGraph TwoTowers(int64_t batch) {
  ModelBuilder model("two_towers", batch);
  const auto rows = static_cast<double>(batch);
  std::vector<int> ends;
  for (const char* const side : {"user", "item"}) {
    std::vector<int> fields;
    for (int i = 0; i < 6; ++i) {
      const int ids = model.Input(absl::StrCat(side, "_ids_", i), rows * 8);
      const int table = model.Variable(absl::StrCat(side, "_table_", i), 400000 * 64);
      const int found = model.Lookup({ids}, table, rows * 8 * 64);
      fields.push_back(model.Op("SegmentMean", {found}, -1, rows * 8 * 64, rows * 64));
    }
    int x = model.Op("ConcatV2", fields, -1, rows * 384, rows * 384);
    x = model.Dense(x, rows, 384, 1024);
    x = model.Dense(x, rows, 1024, 512);
    ends.push_back(model.Dense(x, rows, 512, 128));
  }
  return model.Train({model.Op("MatMul", ends, -1, 2 * rows * rows * 128, rows * rows)});
}

// One program's four replicas over the same variables: what in-graph replication makes.
StepGraph InGraphTowers(int64_t batch) {
  ModelBuilder model("in_graph_towers", batch);
  constexpr int kTowers = 4;
  const double rows = static_cast<double>(batch) / kTowers;
  const std::vector<double> widths = {784, 2048, 2048, 1024, 10};
  std::vector<int> variables;
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    variables.push_back(model.Variable(absl::StrCat("weights_", i), widths[i] * widths[i + 1]));
  std::vector<int> losses;
  for (int tower = 0; tower < kTowers; ++tower) {
    int x = model.Input(absl::StrCat("images_", tower), rows * 784);
    for (size_t i = 0; i < variables.size(); ++i) {
      x = model.DenseWith(x, variables[i], rows, widths[i], widths[i + 1]);
      x = model.Op("Relu", {x}, -1, rows * widths[i + 1], rows * widths[i + 1]);
    }
    losses.push_back(x);
  }
  return model.Train(losses);
}

struct Model {
  const char* name;
  StepGraph (*make)(int64_t batch);
  int64_t batch;
};
constexpr Model kModels[] = {
    {"mlp", Mlp, 512},
    {"vgg16", Vgg16, 32},
    {"resnet50", ResNet50, 32},
    {"inception", Inception, 32},
    {"lstm", Lstm, 64},
    {"transformer", Transformer, 16},
    {"wide_and_deep", WideAndDeep, 2048},
    {"deepfm", DeepFm, 4096},
    {"mixture_of_experts", MixtureOfExperts, 64},
    {"unet", UNet, 8},
    {"two_towers", TwoTowers, 2048},
    {"in_graph_towers", InGraphTowers, 2048},
};
constexpr int64_t kMostBatch = 1 << 24;

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  return names;
}

StatusOr<StepGraph> MakeModel(const std::string& name, int64_t batch) {
  if (batch < 0 || batch > kMostBatch)
    return InvalidArgument("A batch is from 1 to ", kMostBatch, ", found ", batch);
  for (const Model& model : kModels) {
    if (name != model.name) continue;
    const int64_t used = batch == 0 ? model.batch : batch;
    StepGraph step = model.make(used);
    step.fingerprint = absl::StrCat("model ", name, ", batch ", used);
    return step;
  }
  return InvalidArgument("There is no model '", name, "', expected one of ",
                         absl::StrJoin(ModelNames(), ", "));
}

}  // namespace weft::platform
