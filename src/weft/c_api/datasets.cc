// SPDX-License-Identifier: Apache-2.0
#include "weft/c_api/handles.h"
#include "weft/client/session.h"
#include "weft/graph/import.h"
#include "weft/train/dataset.h"

struct weft_dataset {
  weft::train::Program program;
  weft::train::Dataset dataset;
  // Once an element was asked for.
  std::unique_ptr<weft::session::Session> session;
  std::string next;
};

using weft::Status;
using weft::c_api::Answer;
using weft::c_api::NotNull;
using weft::train::Dataset;

namespace weft::c_api {
namespace {

using Read = Dataset (*)(GraphBuilder&, Endpoint, const train::FileOptions&);

weft_error* Open(Read read, const char* const* paths, int num_paths, const char* compression,
                 weft_dataset** out) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(out, "results"));
    WEFT_RETURN_IF_ERROR(CheckList(paths, num_paths, "names"));
    auto made = std::make_unique<weft_dataset>();
    GraphBuilder& builder = made->program.builder();
    const std::vector<std::string> names(paths, paths + num_paths);
    const Tensor files =
        Tensor::FromSpan<std::string>(Shape{num_paths}, absl::MakeConstSpan(names));
    made->dataset =
        read(builder, builder.Constant(files),
             {.compression = compression == nullptr ? std::string() : std::string(compression)});
    WEFT_RETURN_IF_ERROR(builder.status());
    *out = made.release();
    return absl::OkStatus();
  });
}

template <typename Change>
weft_error* Then(weft_dataset* dataset, Change change) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(dataset, "handles"));
    if (dataset->session != nullptr)
      return FailedPrecondition("Elements of the dataset have been taken already");
    dataset->dataset = change(dataset->dataset);
    return dataset->program.status();
  });
}

Status Begin(weft_dataset* dataset) {
  const train::DatasetIterator iterator =
      train::AddIterator(dataset->program, dataset->dataset, "iterator", /*saved=*/false);
  WEFT_RETURN_IF_ERROR(dataset->program.status());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<session::Session> session, client::NewSession({}));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(dataset->program.graph())));
  std::vector<Tensor> none;
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {iterator.initializer->name()}, &none));
  dataset->next = train::NameOf(iterator.next[0]);
  dataset->session = std::move(session);
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft::c_api

weft_error* weft_dataset_records(const char* const* paths, int num_paths, const char* compression,
                                 weft_dataset** out) {
  return weft::c_api::Open(&Dataset::Records, paths, num_paths, compression, out);
}
weft_error* weft_dataset_lines(const char* const* paths, int num_paths, const char* compression,
                               weft_dataset** out) {
  return weft::c_api::Open(&Dataset::Lines, paths, num_paths, compression, out);
}

weft_error* weft_dataset_shard(weft_dataset* dataset, int64_t num_shards, int64_t index) {
  return weft::c_api::Then(dataset,
                           [&](const Dataset& from) { return from.Shard(num_shards, index); });
}
weft_error* weft_dataset_shuffle(weft_dataset* dataset, int64_t buffer, int64_t seed) {
  return weft::c_api::Then(
      dataset, [&](const Dataset& from) { return from.Shuffle(buffer, {.seed = seed}); });
}
weft_error* weft_dataset_repeat(weft_dataset* dataset, int64_t count) {
  return weft::c_api::Then(dataset, [&](const Dataset& from) { return from.Repeat(count); });
}
weft_error* weft_dataset_batch(weft_dataset* dataset, int64_t size, int drop_remainder) {
  return weft::c_api::Then(
      dataset, [&](const Dataset& from) { return from.Batch(size, drop_remainder != 0); });
}
weft_error* weft_dataset_prefetch(weft_dataset* dataset, int64_t buffer) {
  return weft::c_api::Then(dataset, [&](const Dataset& from) { return from.Prefetch(buffer); });
}

weft_error* weft_dataset_next(weft_dataset* dataset, weft_tensor** out) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(dataset, "handles"));
    WEFT_RETURN_IF_ERROR(NotNull(out, "results"));
    *out = nullptr;
    if (dataset->session == nullptr) WEFT_RETURN_IF_ERROR(weft::c_api::Begin(dataset));
    std::vector<weft::Tensor> element;
    WEFT_RETURN_IF_ERROR(dataset->session->Run({}, {dataset->next}, {}, &element));
    return weft::c_api::GiveTensor(element[0], out);
  });
}

void weft_dataset_free(weft_dataset* dataset) { delete dataset; }
