// SPDX-License-Identifier: Apache-2.0
// Pipelines of weft/train/dataset.h beside tf.data (peers/tensorflow_data_rounds.py says what they
// are, and writes the files). A step takes 16 batches, more than lie ready.
//
//   data_rounds (records|examples|jpeg|shuffle|map) FOLDER THREADS
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/rounds.h"
#include "weft/api/ops.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/dataset.h"

namespace weft {
namespace {

using train::Dataset;
using Results = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

constexpr int kBatchesAStep = 16;
constexpr int64_t kSeed = 5;  // the graph's and the op's, as TensorFlow counts

Endpoint Strings(GraphBuilder& b, const std::vector<std::string>& values) {
  return b.Constant(
      Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(values.size())}, values));
}

Dataset FileRecords(GraphBuilder& b, const std::string& folder, const char* name) {
  return Dataset::Records(b, b.Scalar<std::string>(folder + "/" + name)).Repeat();
}

// A batch of serialized examples as their features x [64] (float) and y [] (int64).
Results ParseExamples(GraphBuilder& b, Arguments in) {
  const std::vector<Endpoint> defaults{b.Constant(Tensor::FromSpan<float>(Shape{0}, {})),
                                       b.Constant(Tensor::FromSpan<int64_t>(Shape{0}, {}))};
  Node* parse = b.AddNode(
      "ParseExampleV2",
      {in[0], Strings(b, {}), Strings(b, {}), Strings(b, {"x", "y"}), Strings(b, {}), defaults},
      {{"num_sparse", 0},
       {"sparse_types", AttrValue::TypeList{}},
       {"ragged_value_types", AttrValue::TypeList{}},
       {"ragged_split_types", AttrValue::TypeList{}},
       {"dense_shapes", AttrValue::ShapeList{Shape{64}, Shape()}}});
  if (parse == nullptr) return {};
  return {{parse, 0}, {parse, 1}};
}

Results Picture(GraphBuilder& b, Arguments in) {
  const Endpoint image = b.Op("DecodeJpeg", {in[0]}, {{"channels", 3}});
  const Endpoint one = b.Op("ExpandDims", {image, b.Scalar<int32_t>(0)});
  const Endpoint size = b.Constant(Tensor::Vector<int32_t>({64, 64}));
  const Endpoint small = b.Op("ResizeBilinear", {one, size}, {{"half_pixel_centers", true}});
  return {b.Op("Reshape", {small, b.Constant(Tensor::Vector<int32_t>({64, 64, 3}))})};
}

StatusOr<Dataset> Pipeline(GraphBuilder& b, const std::string& kind, const std::string& folder,
                           int threads) {
  const train::MapOptions parallel{.parallel_calls = threads};
  if (kind == "records") {
    return FileRecords(b, folder, "records").Batch(256).Prefetch(2);
  }
  if (kind == "examples") {
    return FileRecords(b, folder, "examples").Batch(256).Map(ParseExamples, parallel).Prefetch(2);
  }
  if (kind == "jpeg") {
    return FileRecords(b, folder, "jpegs").Map(Picture, parallel).Batch(8).Prefetch(2);
  }
  const Dataset numbers = Dataset::Range(b, 0, int64_t{1} << 40);
  if (kind == "shuffle") {
    return numbers.Shuffle(10'000, {.seed = kSeed, .seed2 = kSeed}).Batch(256);
  }
  if (kind == "map") {
    const auto twice = [](GraphBuilder& body, Arguments x) {
      return Results{body.Op(
          "AddV2", {body.Op("Mul", {x[0], body.Scalar<int64_t>(2)}), body.Scalar<int64_t>(1)})};
    };
    return numbers.Map(twice, parallel).Batch(256).Prefetch(2);
  }
  return InvalidArgument("there is no pipeline '", kind, "'");
}

// What of a batch both sides compare.
double CheckOf(const Tensor& batch) {
  double sum = 0;
  switch (batch.dtype()) {
    case DType::kString:
      for (const std::string& record : batch.span<std::string>()) {
        sum += static_cast<double>(record.size()) + static_cast<unsigned char>(record[0]);
      }
      return sum;
    case DType::kFloat:
      return batch.data<float>()[0] + batch.data<float>()[batch.num_elements() / 2];
    default:
      return static_cast<double>(batch.data<int64_t>()[3]);
  }
}

Status Main(const std::string& kind, const std::string& folder, int threads) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const Dataset dataset, Pipeline(program.builder(), kind, folder, threads));
  const train::DatasetIterator iterator = train::AddIterator(program, dataset);
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(const auto opened,
                        session::NewDirectSession({.catalogue = &StandardCatalogue(),
                                                   .devices = &StandardDevices(),
                                                   .num_threads = threads}));
  WEFT_RETURN_IF_ERROR(opened->Extend(ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(opened->Run({}, {}, {iterator.initializer->name()}, nullptr));
  const std::string next = train::NameOf(iterator.next[0]);
  session::Session* const session = opened.get();
  return bench::Serve([session, next]() -> StatusOr<double> {
    std::vector<Tensor> batch;
    for (int i = 0; i < kBatchesAStep; ++i) {
      WEFT_RETURN_IF_ERROR(session->Run({}, {next}, {}, &batch));
    }
    return CheckOf(batch[0]);
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: data_rounds records|examples|jpeg|shuffle|map FOLDER THREADS\n");
    return 2;
  }
  const weft::Status status = weft::Main(argv[1], argv[2], std::atoi(argv[3]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "data_rounds: %s\n", std::string(status.message()).c_str());
  return 1;
}
