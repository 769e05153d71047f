// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "weft/storage/coding.h"
#include "weft/storage/hdf5.h"
#include "weft/storage/hdf5_format.h"

namespace weft::storage {
namespace hdf5 {
namespace {

void AppendFixed16(uint64_t value, std::string* out) {
  out->push_back(static_cast<char>(value & 0xff));
  out->push_back(static_cast<char>(value >> 8 & 0xff));
}

void PadTo8(std::string* out) { out->resize((out->size() + 7) / 8 * 8, '\0'); }

void Patch64(uint64_t value, size_t at, std::string* out) {
  std::string bytes;
  AppendFixed64(value, &bytes);
  out->replace(at, 8, bytes);
}

// "class and version, three bytes of bits, size, properties".
std::string FloatType(uint32_t size, int sign, int exponent_at, int exponent_bits, int bias) {
  std::string type = {static_cast<char>(0x10 | kFloating), 0x20, static_cast<char>(sign), 0};
  AppendFixed32(size, &type);
  AppendFixed16(0, &type);         // first bit
  AppendFixed16(size * 8, &type);  // bits
  type += {static_cast<char>(exponent_at), static_cast<char>(exponent_bits), 0,
           static_cast<char>(exponent_at)};
  AppendFixed32(static_cast<uint32_t>(bias), &type);
  return type;
}

std::string WholeType(uint32_t size, bool is_signed) {
  std::string type = {static_cast<char>(0x10 | kWhole), static_cast<char>(is_signed ? 8 : 0), 0, 0};
  AppendFixed32(size, &type);
  AppendFixed16(0, &type);
  AppendFixed16(size * 8, &type);
  return type;
}

StatusOr<std::string> TypeOfTensor(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return FloatType(4, 31, 23, 8, 127);
    case DType::kDouble:
      return FloatType(8, 63, 52, 11, 1023);
    case DType::kHalf:
      return FloatType(2, 15, 10, 5, 15);
    case DType::kInt8:
      return WholeType(1, true);
    case DType::kInt16:
      return WholeType(2, true);
    case DType::kInt32:
      return WholeType(4, true);
    case DType::kInt64:
      return WholeType(8, true);
    case DType::kUint8:
      return WholeType(1, false);
    case DType::kUint16:
      return WholeType(2, false);
    case DType::kUint32:
      return WholeType(4, false);
    case DType::kUint64:
      return WholeType(8, false);
    default:
      return InvalidArgument("HDF5 files hold no ", DTypeName(dtype));
  }
}

// Texts of any length, in UTF-8.
std::string TextType() {
  std::string type = {static_cast<char>(0x10 | kVariableLength), 1, 1, 0};
  AppendFixed32(16, &type);
  return type + WholeType(1, false);
}

std::string Dataspace(absl::Span<const int64_t> sizes) {
  std::string space = {1, static_cast<char>(sizes.size()), 0, 0, 0, 0, 0, 0};
  for (const int64_t size : sizes) AppendFixed64(static_cast<uint64_t>(size), &space);
  return space;
}

struct Message {
  uint16_t type;
  std::string data;
};

class Writer {
 public:
  StatusOr<std::string> Write(const Hdf5Group& root) {
    internal_k_ = 16;
    FindLargest(root);
    WEFT_RETURN_IF_ERROR(WriteSuperblock(root));
    return std::move(out_);
  }

 private:
  struct Placed {
    uint64_t header = 0;
    uint64_t tree = 0, heap = 0;  // of groups
    bool is_group = false;
  };

  void FindLargest(const Hdf5Group& group) {
    const size_t leaves = (group.groups.size() + group.datasets.size()) / (2 * kLeafK) + 1;
    internal_k_ = std::max(internal_k_, leaves / 2 + 1);
    for (const auto& [name, child] : group.groups) FindLargest(*child);
  }

  Status WriteSuperblock(const Hdf5Group& root) {
    if (internal_k_ > 65535) return InvalidArgument("a group of HDF5 holds too many members");
    out_.append(kSignature, 8);
    out_ += {0, 0, 0, 0, 0, 8, 8, 0};
    AppendFixed16(kLeafK, &out_);
    AppendFixed16(internal_k_, &out_);
    AppendFixed32(0, &out_);
    AppendFixed64(0, &out_);  // where the file begins
    AppendFixed64(kUndefined, &out_);
    const size_t end_at = out_.size();
    AppendFixed64(0, &out_);
    AppendFixed64(kUndefined, &out_);
    const size_t entry_at = out_.size();
    out_.append(40, '\0');
    WEFT_ASSIGN_OR_RETURN(const Placed placed, WriteGroup(root));
    std::string entry;
    AppendEntry(0, placed, &entry);
    out_.replace(entry_at, entry.size(), entry);
    Patch64(out_.size(), end_at, &out_);
    return absl::OkStatus();
  }

  static void AppendEntry(uint64_t name_at, const Placed& placed, std::string* out) {
    AppendFixed64(name_at, out);
    AppendFixed64(placed.header, out);
    AppendFixed32(placed.is_group ? 1 : 0, out);
    AppendFixed32(0, out);
    AppendFixed64(placed.tree, out);
    AppendFixed64(placed.heap, out);
  }

  StatusOr<Placed> WriteGroup(const Hdf5Group& group) {
    std::map<std::string, Placed> members;
    for (const auto& [name, child] : group.groups) {
      WEFT_ASSIGN_OR_RETURN(members[name], WriteGroup(*child));
    }
    for (const auto& [name, tensor] : group.datasets) {
      if (members.count(name) > 0) {
        return InvalidArgument("a group and a dataset of HDF5 are both named '", name, "'");
      }
      StatusOr<Placed> placed = WriteDataset(tensor);
      WEFT_RETURN_IF_ERROR(Annotate(placed.status(), absl::StrCat("Dataset '", name, "'")));
      members[name] = *placed;
    }
    Placed placed;
    placed.is_group = true;
    WriteMembers(members, &placed);
    std::string table;
    AppendFixed64(placed.tree, &table);
    AppendFixed64(placed.heap, &table);
    std::vector<Message> messages = {{kSymbolTable, table}};
    for (const auto& [name, value] : group.attributes) {
      WEFT_ASSIGN_OR_RETURN(std::string attribute, AttributeMessage(name, value));
      messages.push_back({kAttribute, std::move(attribute)});
    }
    placed.header = WriteHeader(messages);
    return placed;
  }

  // The names' heap, the nodes of symbols, and the tree over them.
  void WriteMembers(const std::map<std::string, Placed>& members, Placed* group) {
    std::string names(8, '\0');
    std::vector<uint64_t> name_at;
    for (const auto& [name, placed] : members) {
      name_at.push_back(names.size());
      names += name;
      names.push_back('\0');
      PadTo8(&names);
    }
    group->heap = Align();
    out_ += "HEAP";
    out_.append(4, '\0');
    AppendFixed64(names.size(), &out_);
    AppendFixed64(1, &out_);  // no free space
    AppendFixed64(out_.size() + 8, &out_);
    out_ += names;

    std::vector<std::pair<uint64_t, uint64_t>> leaves;  // where, and its last name
    size_t at = 0;
    for (auto member = members.begin(); member != members.end();) {
      const uint64_t node = Align();
      const size_t count = std::min<size_t>(2 * kLeafK, members.size() - at);
      out_ += "SNOD";
      out_ += {1, 0};
      AppendFixed16(count, &out_);
      for (size_t i = 0; i < count; ++i, ++member)
        AppendEntry(name_at[at++], member->second, &out_);
      out_.append((2 * kLeafK - count) * 40, '\0');
      leaves.emplace_back(node, name_at[at - 1]);
    }
    group->tree = Align();
    out_ += "TREE";
    out_ += {0, 0};
    AppendFixed16(leaves.size(), &out_);
    AppendFixed64(kUndefined, &out_);
    AppendFixed64(kUndefined, &out_);
    AppendFixed64(0, &out_);
    for (const auto& [node, last] : leaves) {
      AppendFixed64(node, &out_);
      AppendFixed64(last, &out_);
    }
    out_.append((2 * internal_k_ - leaves.size()) * 16, '\0');
  }

  StatusOr<Placed> WriteDataset(const Tensor& tensor) {
    WEFT_ASSIGN_OR_RETURN(const std::string type, TypeOfTensor(tensor.dtype()));
    WEFT_ASSIGN_OR_RETURN(const Tensor host, tensor.ToHost());
    const uint64_t where = host.size_bytes() == 0 ? kUndefined : Align();
    if (host.size_bytes() > 0) {
      out_.append(reinterpret_cast<const char*>(host.bytes()), host.size_bytes());
    }
    std::string layout = {3, 1};
    AppendFixed64(where, &layout);
    AppendFixed64(host.size_bytes(), &layout);
    Placed placed;
    placed.header = WriteHeader({{kDataspace, Dataspace(host.shape().dims())},
                                 {kDatatype, type},
                                 {kFillValue, std::string({2, 2, 2, 0})},
                                 {kLayout, layout}});
    return placed;
  }

  StatusOr<std::string> AttributeMessage(const std::string& name,
                                         const Hdf5Group::Attribute& value) {
    std::vector<std::string> texts;
    std::string space = Dataspace({});
    if (const auto* text = std::get_if<std::string>(&value)) {
      texts = {*text};
    } else {
      texts = std::get<std::vector<std::string>>(value);
      const int64_t count[] = {static_cast<int64_t>(texts.size())};
      space = Dataspace(count);
    }
    std::string type = TextType();
    std::string data = {1, 0};
    AppendFixed16(name.size() + 1, &data);
    AppendFixed16(type.size(), &data);
    AppendFixed16(space.size(), &data);
    std::string named = name;
    named.push_back('\0');
    for (std::string* part : {&named, &type, &space}) {
      PadTo8(part);
      data += *part;
    }
    data += WriteTexts(texts);
    if (data.size() > 65000) {
      return InvalidArgument("HDF5 attribute '", name, "' holds too many texts: ", texts.size());
    }
    return data;
  }

  // Writes texts as a heap of their own; gives (length, heap, number) of each.
  std::string WriteTexts(const std::vector<std::string>& texts) {
    std::string references;
    if (texts.empty()) return references;
    std::string objects;
    uint64_t number = 0;
    const uint64_t heap = Align();
    for (const std::string& text : texts) {
      AppendFixed32(static_cast<uint32_t>(text.size()), &references);
      AppendFixed64(text.empty() ? 0 : heap, &references);
      AppendFixed32(text.empty() ? 0 : static_cast<uint32_t>(number + 1), &references);
      if (text.empty()) continue;
      AppendFixed16(++number, &objects);
      AppendFixed16(1, &objects);
      AppendFixed32(0, &objects);
      AppendFixed64(text.size(), &objects);
      objects += text;
      PadTo8(&objects);
    }
    const size_t size = std::max<size_t>(4096, 16 + objects.size() + 16);
    out_ += "GCOL";
    out_ += {1, 0, 0, 0};
    AppendFixed64(size, &out_);
    out_ += objects;
    // What is free is object 0.
    const size_t left = size - 16 - objects.size();
    AppendFixed64(0, &out_);
    AppendFixed64(left, &out_);
    out_.append(left - 16, '\0');
    return references;
  }

  uint64_t WriteHeader(const std::vector<Message>& messages) {
    std::string body;
    for (const Message& message : messages) {
      std::string data = message.data;
      PadTo8(&data);
      AppendFixed16(message.type, &body);
      AppendFixed16(data.size(), &body);
      AppendFixed32(0, &body);
      body += data;
    }
    const uint64_t where = Align();
    out_ += {1, 0};
    AppendFixed16(messages.size(), &out_);
    AppendFixed32(1, &out_);
    AppendFixed32(static_cast<uint32_t>(body.size()), &out_);
    AppendFixed32(0, &out_);
    out_ += body;
    return where;
  }

  uint64_t Align() {
    PadTo8(&out_);
    return out_.size();
  }

  std::string out_;
  size_t internal_k_ = 16;
};

}  // namespace
}  // namespace hdf5

StatusOr<std::string> WriteHdf5(const Hdf5Group& root) { return hdf5::Writer().Write(root); }

}  // namespace weft::storage
