// SPDX-License-Identifier: Apache-2.0
// Compressed bytes in strings.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/storage/byte_stream.h"

namespace weft::ops::io::decode_compressed {
namespace {

// What one string may become: a few bytes can ask for any amount of memory.
constexpr size_t kMostBytes = size_t{1} << 30;

// Bytes in memory, read as a file. The text must outlive it.
class TextFile final : public ReadableFile {
 public:
  explicit TextFile(absl::string_view text) : text_(text) {}
  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    if (offset >= text_.size()) return size_t{0};
    const size_t count = std::min(buffer.size(), text_.size() - static_cast<size_t>(offset));
    std::copy_n(text_.data() + offset, count, buffer.data());
    return count;
  }

 private:
  const absl::string_view text_;
};

class DecompressKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const std::string name = c.AttrOr<std::string>("compression_type", "");
    StatusOr<storage::Compression> compression = storage::CompressionFromName(name);
    if (!compression.ok()) {
      return InvalidArgument("Only ZLIB, GZIP or NONE are supported compressions, got '", name,
                             "'");
    }
    return std::make_unique<DecompressKernel>(*compression);
  }
  explicit DecompressKernel(storage::Compression compression) : compression_(compression) {}

  Status Compute(KernelContext& c) override {
    if (compression_ == storage::Compression::kNone) {
      c.SetOutput(0, c.input(0));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(0).shape()));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      std::string& plain = out->data<std::string>()[i];
      WEFT_ASSIGN_OR_RETURN(plain, Decompress(c.input(0).data<std::string>()[i], i));
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<std::string> Decompress(const std::string& text, int64_t number) const {
    const std::unique_ptr<storage::ByteSource> source =
        storage::MakeSource(std::make_unique<TextFile>(text),
                            absl::StrCat("element ", number, " of the input"), compression_);
    std::string plain;
    std::vector<char> block(size_t{64} << 10);
    while (true) {
      WEFT_ASSIGN_OR_RETURN(const size_t count, source->Read(absl::MakeSpan(block)));
      if (count == 0) return plain;
      if (plain.size() + count > kMostBytes) {
        return ResourceExhausted("Element ", number, " of the input becomes longer than ",
                                 kMostBytes, " bytes");
      }
      plain.append(block.data(), count);
    }
  }

  const storage::Compression compression_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DecodeCompressed")
                    .Doc("Each string decompressed; compression_type is '', 'ZLIB' or 'GZIP'.\n"
                         "DataLoss for strings that are not compressed so.")
                    .Input("bytes: string")
                    .Output("output: string")
                    .Attr("compression_type: string = ''")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<DecompressKernel>()));
}

}  // namespace weft::ops::io::decode_compressed
