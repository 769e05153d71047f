// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/zlib_stream.h"

#include <algorithm>
#include <utility>

#include <zlib.h>

namespace weft::storage {
namespace {

// zlib's largest window; 16 more asks for the gzip wrapper.
int WindowBits(Compression compression) {
  return MAX_WBITS + (compression == Compression::kGzip ? 16 : 0);
}

const char* Name(Compression compression) {
  return compression == Compression::kGzip ? "gzip" : "zlib";
}

class ZlibSource : public ByteSource {
 public:
  ZlibSource(std::unique_ptr<ByteSource> compressed, std::string path, Compression compression,
             size_t buffer_bytes)
      : compressed_(std::move(compressed)),
        path_(std::move(path)),
        compression_(compression),
        buffer_(std::max<size_t>(buffer_bytes, 16), '\0') {
    ready_ = inflateInit2(&zlib_, WindowBits(compression)) == Z_OK;
  }
  ~ZlibSource() override {
    if (ready_) inflateEnd(&zlib_);
  }

  StatusOr<size_t> Read(absl::Span<char> out) override {
    if (!ready_) return ResourceExhausted("Out of memory to decompress ", path_);
    size_t done = 0;
    while (done < out.size()) {
      if (zlib_.avail_in == 0) {
        WEFT_ASSIGN_OR_RETURN(const size_t got,
                              compressed_->Read(absl::MakeSpan(buffer_.data(), buffer_.size())));
        if (got == 0) {
          if (inside_) return Damaged("it ends in the middle");
          break;
        }
        zlib_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        zlib_.avail_in = static_cast<uInt>(got);
      }
      inside_ = true;
      const uInt space = static_cast<uInt>(std::min<size_t>(out.size() - done, 1 << 30));
      zlib_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      zlib_.avail_out = space;
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      done += space - zlib_.avail_out;
      if (result == Z_STREAM_END) {
        inside_ = false;
        if (inflateReset(&zlib_) != Z_OK) return Damaged("zlib cannot go on");
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Damaged(zlib_.msg != nullptr ? zlib_.msg : "bad data");
      }
    }
    return done;
  }

  Status Seek(uint64_t) override {
    return Unimplemented("A compressed file cannot be read from the middle: ", path_);
  }

 private:
  Status Damaged(const char* what) const {
    return DataLoss("Damaged ", Name(compression_), " stream (", what, ") in file ", path_);
  }

  const std::unique_ptr<ByteSource> compressed_;
  const std::string path_;
  const Compression compression_;
  std::string buffer_;
  z_stream zlib_ = {};
  bool ready_ = false;
  bool inside_ = false;  // a member has begun and not ended
};

class ZlibSink : public ByteSink {
 public:
  ZlibSink(std::unique_ptr<ByteSink> compressed, std::string path, Compression compression,
           size_t buffer_bytes)
      : compressed_(std::move(compressed)),
        path_(std::move(path)),
        buffer_(std::max<size_t>(buffer_bytes, 16), '\0') {
    ready_ = deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WindowBits(compression), 8,
                          Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~ZlibSink() override {
    if (ready_) deflateEnd(&zlib_);
  }

  Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const size_t take = std::min<size_t>(data.size(), 1 << 30);
      zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
      zlib_.avail_in = static_cast<uInt>(take);
      WEFT_RETURN_IF_ERROR(Deflate(Z_NO_FLUSH));
      data.remove_prefix(take);
    }
    return absl::OkStatus();
  }
  Status Flush() override {
    WEFT_RETURN_IF_ERROR(Deflate(Z_SYNC_FLUSH));
    return compressed_->Flush();
  }
  Status Sync() override {
    WEFT_RETURN_IF_ERROR(Deflate(Z_SYNC_FLUSH));
    return compressed_->Sync();
  }
  Status Close() override {
    const Status finished = Deflate(Z_FINISH);
    const Status closed = compressed_->Close();
    return finished.ok() ? closed : finished;
  }

 private:
  // Runs zlib until it has taken all input and given all output that `flush` asks for.
  Status Deflate(int flush) {
    if (!ready_) return ResourceExhausted("Out of memory to compress ", path_);
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      zlib_.avail_out = static_cast<uInt>(buffer_.size());
      if (deflate(&zlib_, flush) == Z_STREAM_ERROR) {
        return Internal("zlib is in a bad state while writing ", path_);
      }
      WEFT_RETURN_IF_ERROR(compressed_->Append({buffer_.data(), buffer_.size() - zlib_.avail_out}));
    } while (zlib_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> compressed_;
  const std::string path_;
  std::string buffer_;
  z_stream zlib_ = {};
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> MakeZlibSource(std::unique_ptr<ByteSource> compressed, std::string path,
                                           Compression compression, size_t buffer_bytes) {
  return std::make_unique<ZlibSource>(std::move(compressed), std::move(path), compression,
                                      buffer_bytes);
}

std::unique_ptr<ByteSink> MakeZlibSink(std::unique_ptr<ByteSink> compressed, std::string path,
                                       Compression compression, size_t buffer_bytes) {
  return std::make_unique<ZlibSink>(std::move(compressed), std::move(path), compression,
                                    buffer_bytes);
}

}  // namespace weft::storage
