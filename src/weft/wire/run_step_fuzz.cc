// SPDX-License-Identifier: Apache-2.0
// Any bytes as a RunStepRequest in chunks of any size, and as the meta of a tensor frame: an error,
// or values that go back on the wire and come again the same.
#include <cstdlib>
#include <cstring>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "weft/wire/step_messages.h"
#include "weft/wire/tensor_frame.h"

namespace {

using weft::wire::TensorMeta;

void TryStep(absl::string_view bytes, size_t chunk_size) {
  std::vector<absl::string_view> chunks;
  for (size_t at = 0; at < bytes.size(); at += chunk_size)
    chunks.push_back(bytes.substr(at, chunk_size));
  weft::wire::RunStepMessage message;
  if (!weft::wire::ParseRunStep(chunks, &message).ok()) return;
  for (const weft::wire::NamedTensor& feed : message.feeds) {
    weft::wire::Payload payload;
    if (feed.tensor.size_bytes() > (1 << 20)) continue;
    if (!weft::wire::AppendNamedTensor(2, feed.name, feed.tensor, &payload).ok()) continue;
    const std::string again = payload.Flatten();
    const absl::string_view chunk = again;
    weft::wire::RunStepMessage back;
    if (!weft::wire::ParseRunStep({&chunk, 1}, &back).ok() || back.feeds.size() != 1) abort();
    if (back.feeds[0].name != feed.name || back.feeds[0].tensor.shape() != feed.tensor.shape())
      abort();
  }
}

void TryMeta(absl::string_view bytes) {
  for (uint64_t body : {0, 4, 8, 24}) {
    weft::StatusOr<TensorMeta> meta = TensorMeta::Parse(bytes, body);
    if (!meta.ok() || meta->is_dead) continue;
    weft::StatusOr<weft::transport::Region> region = weft::wire::AllocateBody(body);
    if (!region.ok()) abort();
    std::memset(region->data, 0, region->size);
    weft::StatusOr<weft::Tensor> tensor = weft::wire::TensorFromBody(*meta, *region);
    if (tensor.ok() && !meta->is_proto && tensor->size_bytes() != body) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each string that is not UTF-8
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  TryStep(bytes, 1 + size % 7);
  TryStep(bytes, 1 << 20);
  TryMeta(bytes);
  return 0;
}
