// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/storage/coding.h"
#include "weft/storage/hdf5.h"
#include "weft/storage/hdf5_chunks.h"
#include "weft/storage/hdf5_cursor.h"
#include "weft/storage/hdf5_format.h"

namespace weft::storage {
namespace hdf5 {
namespace {

constexpr int kMaxDepth = 64;  // of groups, of trees, of continued headers
constexpr size_t kMaxMessages = 1 << 20;

struct Datatype {
  int type_class = 0;
  uint32_t size = 0;
  DType dtype = DType::kInvalid;  // of plain numbers
  bool is_text = false;           // of fixed or variable length
};

DType WholeOf(uint32_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUint8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUint16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUint32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUint64;
    default:
      return DType::kInvalid;
  }
}

StatusOr<Datatype> ReadDatatype(Cursor& c) {
  Datatype type;
  WEFT_ASSIGN_OR_RETURN(const uint64_t head, c.Take(4));
  WEFT_ASSIGN_OR_RETURN(const uint64_t size, c.Take(4));
  type.type_class = static_cast<int>(head & 0x0f);
  type.size = static_cast<uint32_t>(size);
  const bool big_endian = (head >> 8 & 1) != 0;
  if (type.type_class == kWhole && !big_endian) {
    type.dtype = WholeOf(type.size, (head >> 8 & 8) != 0);
  } else if (type.type_class == kFloating && !big_endian) {
    type.dtype = size == 4   ? DType::kFloat
                 : size == 8 ? DType::kDouble
                 : size == 2 ? DType::kHalf
                             : DType::kInvalid;
  } else if (type.type_class == kText) {
    type.is_text = true;
  } else if (type.type_class == kVariableLength) {
    type.is_text = (head >> 8 & 0x0f) == 1;
  }
  return type;
}

StatusOr<Shape> ReadDataspace(Cursor& c) {
  WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
  WEFT_ASSIGN_OR_RETURN(const uint64_t rank, c.Take(1));
  WEFT_ASSIGN_OR_RETURN(const uint64_t flags, c.Take(1));
  (void)flags;  // whether sizes may grow: they are told after these
  if (version != 1 && version != 2) return c.Unread("dataspace", version);
  WEFT_RETURN_IF_ERROR(c.Take(version == 1 ? 5 : 1).status());
  std::vector<int64_t> dims;
  for (uint64_t i = 0; i < rank; ++i) {
    WEFT_ASSIGN_OR_RETURN(const uint64_t size, c.Take(8));
    if (size > static_cast<uint64_t>(INT64_MAX)) return c.Damaged("a size of a dataspace");
    dims.push_back(static_cast<int64_t>(size));
  }
  return Shape::Make(dims);
}

// What the messages of one object say.
struct Object {
  uint64_t tree = kUndefined, heap = kUndefined;
  bool is_group = false;
  bool has_space = false, has_type = false;
  Shape shape;
  Datatype type;
  uint64_t layout = kUndefined;  // where its message lies
  std::vector<Filter> filters;
  std::vector<std::pair<uint64_t, uint64_t>> attributes;  // where, how long
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  StatusOr<std::unique_ptr<Hdf5Group>> Read() {
    if (bytes_.size() < 96 || bytes_.substr(0, 8) != absl::string_view(kSignature, 8)) {
      return InvalidArgument("these are no bytes of an HDF5 file");
    }
    Cursor c(bytes_, 8);
    WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
    if (version > 1) return c.Unread("superblock", version);
    WEFT_RETURN_IF_ERROR(c.Take(4).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t offset_size, c.Take(1));
    WEFT_ASSIGN_OR_RETURN(const uint64_t length_size, c.Take(1));
    if (offset_size != 8 || length_size != 8) {
      return Unimplemented("HDF5 files with addresses of ", offset_size, " bytes");
    }
    c.Move(version == 0 ? 24 + 32 : 28 + 32);
    WEFT_RETURN_IF_ERROR(c.Take(8).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t header, c.Take(8));
    auto root = std::make_unique<Hdf5Group>();
    WEFT_ASSIGN_OR_RETURN(const Object object, ReadObject(header));
    if (!object.is_group) return c.Damaged("the root, which is no group");
    WEFT_RETURN_IF_ERROR(ReadGroup(object, 0, root.get()));
    return root;
  }

 private:
  StatusOr<Object> ReadObject(uint64_t header) {
    // Shared objects could make a small file read as a large one.
    if (++objects_ > bytes_.size() / 16 + 16) return DataLoss("an HDF5 file with circles in it");
    Cursor c(bytes_, header);
    WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
    if (version != 1) return c.Unread("object header", version);
    WEFT_RETURN_IF_ERROR(c.Take(1).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t count, c.Take(2));
    WEFT_RETURN_IF_ERROR(c.Take(4).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t size, c.Take(4));
    Object object;
    std::vector<std::pair<uint64_t, uint64_t>> blocks = {{header + 16, size}};
    uint64_t seen = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i > kMaxDepth) return c.Damaged("a header that never ends");
      const auto [begin, length] = blocks[i];
      if (begin > bytes_.size() || length > bytes_.size() - begin) return c.Damaged("a header");
      uint64_t at = begin;
      while (seen < count && at + 8 <= begin + length) {
        Cursor m(bytes_, at);
        WEFT_ASSIGN_OR_RETURN(const uint64_t type, m.Take(2));
        WEFT_ASSIGN_OR_RETURN(const uint64_t bytes, m.Take(2));
        WEFT_ASSIGN_OR_RETURN(const uint64_t flags, m.Take(4));
        if (at + 8 + bytes > begin + length) return m.Damaged("a message");
        if ((flags & 2) != 0) return Unimplemented("shared messages of HDF5 files");
        WEFT_RETURN_IF_ERROR(ReadMessage(type, at + 8, bytes, &object, &blocks));
        at += 8 + bytes;
        if (++seen > kMaxMessages) return m.Damaged("a header of too many messages");
      }
    }
    return object;
  }

  Status ReadMessage(uint64_t type, uint64_t at, uint64_t length, Object* object,
                     std::vector<std::pair<uint64_t, uint64_t>>* blocks) {
    Cursor c(bytes_.substr(0, at + length), at);
    switch (type) {
      case kSymbolTable: {
        WEFT_ASSIGN_OR_RETURN(object->tree, c.Take(8));
        WEFT_ASSIGN_OR_RETURN(object->heap, c.Take(8));
        object->is_group = true;
        break;
      }
      case kDataspace: {
        WEFT_ASSIGN_OR_RETURN(object->shape, ReadDataspace(c));
        object->has_space = true;
        break;
      }
      case kDatatype: {
        WEFT_ASSIGN_OR_RETURN(object->type, ReadDatatype(c));
        object->has_type = true;
        break;
      }
      case kLayout:
        object->layout = at;
        break;
      case kFilters: {
        WEFT_ASSIGN_OR_RETURN(object->filters, ReadFilters(c));
        break;
      }
      case kAttribute:
        object->attributes.emplace_back(at, length);
        break;
      case kContinuation: {
        WEFT_ASSIGN_OR_RETURN(const uint64_t begin, c.Take(8));
        WEFT_ASSIGN_OR_RETURN(const uint64_t size, c.Take(8));
        blocks->emplace_back(begin, size);
        break;
      }
      default:
        break;
    }
    return absl::OkStatus();
  }

  Status ReadGroup(const Object& object, int depth, Hdf5Group* group) {
    if (depth > kMaxDepth) return DataLoss("groups of an HDF5 file are nested too deep");
    for (const auto& [at, length] : object.attributes) {
      WEFT_RETURN_IF_ERROR(ReadAttribute(at, length, group));
    }
    Cursor h(bytes_, object.heap);
    WEFT_RETURN_IF_ERROR(h.Expect("HEAP"));
    WEFT_RETURN_IF_ERROR(h.Take(4).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t heap_size, h.Take(8));
    WEFT_RETURN_IF_ERROR(h.Take(8).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t heap_at, h.Take(8));
    if (heap_at > bytes_.size() || heap_size > bytes_.size() - heap_at) return h.Damaged("a heap");
    return ReadTree(object.tree, bytes_.substr(heap_at, heap_size), depth, 0, group);
  }

  Status ReadTree(uint64_t at, absl::string_view names, int depth, int level, Hdf5Group* group) {
    if (level > kMaxDepth) return DataLoss("a tree of an HDF5 file is too deep");
    if (++trees_ > bytes_.size() / 16 + 16) return DataLoss("an HDF5 file with circles in it");
    Cursor c(bytes_, at);
    WEFT_RETURN_IF_ERROR(c.Expect("TREE"));
    WEFT_ASSIGN_OR_RETURN(const uint64_t type, c.Take(1));
    if (type != 0) return c.Damaged("a tree of a group");
    WEFT_ASSIGN_OR_RETURN(const uint64_t height, c.Take(1));
    WEFT_ASSIGN_OR_RETURN(const uint64_t entries, c.Take(2));
    WEFT_RETURN_IF_ERROR(c.Skip(16));
    for (uint64_t i = 0; i < entries; ++i) {
      WEFT_RETURN_IF_ERROR(c.Take(8).status());
      WEFT_ASSIGN_OR_RETURN(const uint64_t child, c.Take(8));
      WEFT_RETURN_IF_ERROR(height > 0 ? ReadTree(child, names, depth, level + 1, group)
                                      : ReadSymbols(child, names, depth, group));
    }
    return absl::OkStatus();
  }

  Status ReadSymbols(uint64_t at, absl::string_view names, int depth, Hdf5Group* group) {
    Cursor c(bytes_, at);
    WEFT_RETURN_IF_ERROR(c.Expect("SNOD"));
    WEFT_RETURN_IF_ERROR(c.Take(2).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t count, c.Take(2));
    for (uint64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(const uint64_t name_at, c.Take(8));
      WEFT_ASSIGN_OR_RETURN(const uint64_t header, c.Take(8));
      WEFT_ASSIGN_OR_RETURN(const uint64_t cache, c.Take(4));
      WEFT_RETURN_IF_ERROR(c.Skip(20));
      if (name_at >= names.size()) return c.Damaged("a name");
      const size_t end = names.find('\0', name_at);
      if (end == names.npos) return c.Damaged("a name");
      if (cache == 2) continue;  // a soft link
      WEFT_RETURN_IF_ERROR(
          ReadMember(std::string(names.substr(name_at, end - name_at)), header, depth, group));
    }
    return absl::OkStatus();
  }

  Status ReadMember(const std::string& name, uint64_t header, int depth, Hdf5Group* group) {
    StatusOr<Object> object = ReadObject(header);
    WEFT_RETURN_IF_ERROR(Annotate(object.status(), absl::StrCat("'", name, "'")));
    if (object->is_group) {
      auto child = std::make_unique<Hdf5Group>();
      WEFT_RETURN_IF_ERROR(ReadGroup(*object, depth + 1, child.get()));
      group->groups[name] = std::move(child);
      return absl::OkStatus();
    }
    if (!object->has_space || !object->has_type) return absl::OkStatus();  // a named type
    StatusOr<Tensor> tensor = ReadDataset(*object);
    // Texts and compounds are not what weights are made of.
    if (tensor.status().code() == absl::StatusCode::kUnimplemented &&
        object->type.dtype == DType::kInvalid) {
      return absl::OkStatus();
    }
    WEFT_RETURN_IF_ERROR(Annotate(tensor.status(), absl::StrCat("Dataset '", name, "'")));
    group->datasets[name] = *std::move(tensor);
    return absl::OkStatus();
  }

  StatusOr<Tensor> ReadDataset(const Object& object) {
    if (object.type.dtype == DType::kInvalid) {
      return Unimplemented("HDF5 datasets of class ", object.type.type_class);
    }
    Cursor c(bytes_, object.layout);
    WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
    if (version != 3) return c.Unread("layout", version);
    WEFT_ASSIGN_OR_RETURN(const uint64_t kind, c.Take(1));
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes,
                          MultiplySizes(object.shape.num_elements(), object.type.size));
    if (kind == 2) {
      return ReadChunks(bytes_, c, object.type.dtype, object.shape, object.filters);
    }
    uint64_t where = 0, length = 0;
    if (kind == 0) {
      WEFT_ASSIGN_OR_RETURN(length, c.Take(2));
      where = c.at();
    } else if (kind == 1) {
      WEFT_ASSIGN_OR_RETURN(where, c.Take(8));
      WEFT_ASSIGN_OR_RETURN(length, c.Take(8));
    } else {
      return c.Unread("layout class", kind);
    }
    if (where == kUndefined || bytes == 0) {
      // Nothing was written: zeros, of no more than a file of this size may ask for.
      if (static_cast<uint64_t>(bytes) > bytes_.size() + 4096) return c.Damaged("a dataset's size");
      return Tensor::Zeros(object.type.dtype, object.shape);
    }
    if (length < static_cast<uint64_t>(bytes) || where > bytes_.size() ||
        static_cast<uint64_t>(bytes) > bytes_.size() - where) {
      return c.Damaged("a dataset's bytes");
    }
    read_bytes_ += static_cast<uint64_t>(bytes);
    if (read_bytes_ > 4 * bytes_.size() + 4096) return c.Damaged("datasets, which overlap");
    WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(object.type.dtype, object.shape));
    std::copy_n(bytes_.data() + where, bytes, reinterpret_cast<char*>(tensor.bytes()));
    return tensor;
  }

  Status ReadAttribute(uint64_t at, uint64_t length, Hdf5Group* group) {
    Cursor c(bytes_.substr(0, at + length), at);
    WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
    WEFT_ASSIGN_OR_RETURN(const uint64_t flags, c.Take(1));
    if (version < 1 || version > 3) return c.Unread("attribute", version);
    if (version > 1 && flags != 0) return absl::OkStatus();  // of a named type
    WEFT_ASSIGN_OR_RETURN(const uint64_t name_size, c.Take(2));
    WEFT_ASSIGN_OR_RETURN(const uint64_t type_size, c.Take(2));
    WEFT_ASSIGN_OR_RETURN(const uint64_t space_size, c.Take(2));
    if (version == 3) WEFT_RETURN_IF_ERROR(c.Take(1).status());
    const auto padded = [&](uint64_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
    WEFT_ASSIGN_OR_RETURN(const absl::string_view named, c.Bytes(padded(name_size)));
    const std::string name(named.substr(0, named.find('\0')));
    const uint64_t type_at = c.at();
    WEFT_ASSIGN_OR_RETURN(const Datatype type, ReadDatatype(c));
    c.Move(type_at + padded(type_size));
    const uint64_t space_at = c.at();
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ReadDataspace(c));
    c.Move(space_at + padded(space_size));
    if (!type.is_text) {
      // h5py writes an empty list as one of numbers.
      if (shape.num_elements() == 0) group->attributes[name] = std::vector<std::string>();
      return absl::OkStatus();
    }
    std::vector<std::string> texts;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      WEFT_ASSIGN_OR_RETURN(std::string text, ReadText(c, type));
      texts.push_back(std::move(text));
    }
    if (shape.rank() == 0) {
      group->attributes[name] = std::move(texts[0]);
    } else {
      group->attributes[name] = std::move(texts);
    }
    return absl::OkStatus();
  }

  StatusOr<std::string> ReadText(Cursor& c, const Datatype& type) {
    if (type.type_class == kText) {
      WEFT_ASSIGN_OR_RETURN(const absl::string_view fixed, c.Bytes(type.size));
      if (type.size == 0) return c.Damaged("a text without a size");
      return std::string(fixed.substr(0, fixed.find('\0')));
    }
    WEFT_ASSIGN_OR_RETURN(const uint64_t length, c.Take(4));
    WEFT_ASSIGN_OR_RETURN(const uint64_t heap, c.Take(8));
    WEFT_ASSIGN_OR_RETURN(const uint64_t number, c.Take(4));
    if (length == 0) return std::string();
    Cursor g(bytes_, heap);
    WEFT_RETURN_IF_ERROR(g.Expect("GCOL"));
    WEFT_RETURN_IF_ERROR(g.Take(4).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t size, g.Take(8));
    const uint64_t end = heap + std::min<uint64_t>(size, bytes_.size());
    while (g.at() + 16 <= end) {
      WEFT_ASSIGN_OR_RETURN(const uint64_t index, g.Take(2));
      WEFT_RETURN_IF_ERROR(g.Take(6).status());
      WEFT_ASSIGN_OR_RETURN(const uint64_t bytes, g.Take(8));
      if (index == 0) break;
      if (index == number) {
        if (bytes < length) return g.Damaged("a text");
        read_bytes_ += length;
        if (read_bytes_ > 4 * bytes_.size() + 4096) return g.Damaged("texts, which overlap");
        WEFT_ASSIGN_OR_RETURN(const absl::string_view text, g.Bytes(length));
        return std::string(text);
      }
      if (bytes > bytes_.size()) return g.Damaged("a heap of texts");
      WEFT_RETURN_IF_ERROR(g.Skip((bytes + 7) / 8 * 8));
    }
    return g.Damaged("a text that its heap does not hold");
  }

  const absl::string_view bytes_;
  uint64_t objects_ = 0, trees_ = 0, read_bytes_ = 0;
};

}  // namespace
}  // namespace hdf5

StatusOr<std::unique_ptr<Hdf5Group>> ReadHdf5(absl::string_view bytes) {
  return hdf5::Reader(bytes).Read();
}

}  // namespace weft::storage
