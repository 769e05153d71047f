// SPDX-License-Identifier: Apache-2.0
// PKWARE's APPNOTE.TXT 6.3.
#include "weft/storage/zip_archive.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "weft/storage/coding.h"
#include "weft/storage/deflate.h"

namespace weft::storage {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kDate = 0x00210000;  // 1980-01-01, 0:00: equal files make equal archives

void Append16(uint32_t value, std::string* out) {
  out->push_back(static_cast<char>(value & 0xff));
  out->push_back(static_cast<char>(value >> 8 & 0xff));
}

uint32_t Load16(const char* p) {
  return static_cast<uint8_t>(p[0]) | static_cast<uint32_t>(static_cast<uint8_t>(p[1])) << 8;
}

// What a file's two headers have in common.
void AppendFacts(const std::string& name, const std::string& bytes, std::string* out) {
  Append16(20, out);     // the version that reads it
  Append16(0x800, out);  // the name is UTF-8
  Append16(0, out);      // stored
  AppendFixed32(kDate, out);
  AppendFixed32(Crc32(bytes), out);
  AppendFixed32(static_cast<uint32_t>(bytes.size()), out);
  AppendFixed32(static_cast<uint32_t>(bytes.size()), out);
  Append16(static_cast<uint32_t>(name.size()), out);
  Append16(0, out);
}

class ZipReader {
 public:
  ZipReader(absl::string_view bytes, size_t most) : bytes_(bytes), left_(most) {}

  StatusOr<ArchiveFiles> Read() {
    // The end record lies last, before a remark of up to 65535 bytes.
    size_t end = bytes_.npos;
    for (size_t back = 22; back <= std::min<size_t>(bytes_.size(), 22 + 65535); ++back) {
      if (LoadFixed32(bytes_.data() + bytes_.size() - back) != kEndMark) continue;
      end = bytes_.size() - back;
      break;
    }
    if (end == bytes_.npos) return InvalidArgument("these are no bytes of a zip archive");
    const uint32_t count = Load16(bytes_.data() + end + 10);
    size_t at = LoadFixed32(bytes_.data() + end + 16);
    ArchiveFiles files;
    for (uint32_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(at, ReadEntry(at, &files));
    }
    return files;
  }

 private:
  bool Has(size_t at, size_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }

  StatusOr<size_t> ReadEntry(size_t at, ArchiveFiles* files) {
    if (!Has(at, 46) || LoadFixed32(bytes_.data() + at) != kCentralMark) {
      return DataLoss("zip archive: its list of files is damaged at byte ", at);
    }
    const char* p = bytes_.data() + at;
    const uint32_t flags = Load16(p + 8), method = Load16(p + 10), crc = LoadFixed32(p + 16);
    const uint64_t packed = LoadFixed32(p + 20), size = LoadFixed32(p + 24);
    const size_t name_size = Load16(p + 28), extra = Load16(p + 30), remark = Load16(p + 32);
    const size_t local = LoadFixed32(p + 42);
    if (!Has(at + 46, name_size + extra + remark)) {
      return DataLoss("zip archive: its list of files is cut short");
    }
    const std::string name(p + 46, name_size);
    const size_t next = at + 46 + name_size + extra + remark;
    if (!name.empty() && name.back() == '/') return next;
    const Status read = [&]() -> Status {
      if ((flags & 1) != 0) return Unimplemented("it is encrypted");
      if (!Has(local, 30) || LoadFixed32(bytes_.data() + local) != kLocalMark) {
        return DataLoss("its header is damaged");
      }
      const size_t begin =
          local + 30 + Load16(bytes_.data() + local + 26) + Load16(bytes_.data() + local + 28);
      if (!Has(begin, packed)) return DataLoss("its bytes lie outside the archive");
      if (size > left_) return ResourceExhausted("it is larger than what is expected");
      const absl::string_view stored = bytes_.substr(begin, packed);
      std::string bytes;
      if (method == 0 && packed == size) {
        bytes = std::string(stored);
      } else if (method == 8) {
        WEFT_ASSIGN_OR_RETURN(bytes, Inflate(stored, size, DeflateForm::kRaw));
      } else {
        return Unimplemented("it is packed by method ", method);
      }
      if (bytes.size() != size || Crc32(bytes) != crc) return DataLoss("its bytes are damaged");
      left_ -= bytes.size();
      (*files)[name] = std::move(bytes);
      return absl::OkStatus();
    }();
    WEFT_RETURN_IF_ERROR(Annotate(read, absl::StrCat("zip archive: file '", name, "'")));
    return next;
  }

  const absl::string_view bytes_;
  size_t left_;
};

}  // namespace

StatusOr<std::string> WriteZip(const ArchiveFiles& files) {
  std::string out, list;
  for (const auto& [name, bytes] : files) {
    if (bytes.size() + out.size() > UINT32_MAX || name.size() > 65535 || files.size() > 65535) {
      return InvalidArgument("zip archive: file '", name, "' makes it larger than 4 GB");
    }
    AppendFixed32(kCentralMark, &list);
    Append16(20, &list);
    AppendFacts(name, bytes, &list);
    Append16(0, &list);               // remark
    Append16(0, &list);               // disk
    Append16(0, &list);               // internal attributes
    AppendFixed32(0x1a40000, &list);  // rw-r--r--
    AppendFixed32(static_cast<uint32_t>(out.size()), &list);
    list += name;
    AppendFixed32(kLocalMark, &out);
    AppendFacts(name, bytes, &out);
    out += name;
    out += bytes;
  }
  const size_t list_at = out.size();
  if (list_at + list.size() > UINT32_MAX) {
    return InvalidArgument("zip archive: its files are larger than 4 GB");
  }
  out += list;
  AppendFixed32(kEndMark, &out);
  AppendFixed32(0, &out);
  Append16(static_cast<uint32_t>(files.size()), &out);
  Append16(static_cast<uint32_t>(files.size()), &out);
  AppendFixed32(static_cast<uint32_t>(list.size()), &out);
  AppendFixed32(static_cast<uint32_t>(list_at), &out);
  Append16(0, &out);
  return out;
}

StatusOr<ArchiveFiles> ReadZip(absl::string_view bytes, size_t most) {
  return ZipReader(bytes, most).Read();
}

}  // namespace weft::storage
