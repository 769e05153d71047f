// SPDX-License-Identifier: Apache-2.0
#include "platform/search/event_scalars.h"

#include <cstdint>
#include <cstring>
#include <optional>

namespace weft::platform {
namespace {

// Fields of a message of the protobuf wire format, one after the other.
class MessageReader {
 public:
  explicit MessageReader(absl::string_view bytes) : rest_(bytes) {}

  struct Field {
    uint64_t number = 0;
    int wire_type = 0;
    uint64_t varint = 0;      // of types 0, 1 and 5
    absl::string_view bytes;  // of type 2
  };

  // None at the end, and where the bytes make no sense.
  std::optional<Field> Next() {
    const std::optional<uint64_t> key = Varint();
    if (!key.has_value()) return std::nullopt;
    Field field;
    field.number = *key >> 3;
    field.wire_type = static_cast<int>(*key & 7);
    if (field.wire_type == 0) {
      const std::optional<uint64_t> value = Varint();
      if (!value.has_value()) return std::nullopt;
      field.varint = *value;
      return field;
    }
    uint64_t length = field.wire_type == 1 ? 8 : 4;
    if (field.wire_type == 2) {
      const std::optional<uint64_t> size = Varint();
      if (!size.has_value()) return std::nullopt;
      length = *size;
    } else if (field.wire_type != 1 && field.wire_type != 5) {
      return std::nullopt;
    }
    if (length > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (field.wire_type != 2) std::memcpy(&field.varint, field.bytes.data(), length);
    return field;
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  absl::string_view rest_;
};

float FloatOf(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &low, sizeof(value));
  return value;
}

constexpr uint64_t kFloatType = 1, kDoubleType = 2;

// A TensorProto of one float or double.
std::optional<double> ScalarOf(absl::string_view tensor) {
  uint64_t dtype = 0;
  std::optional<double> value;
  absl::string_view content;
  MessageReader reader(tensor);
  while (const auto field = reader.Next()) {
    if (field->number == 1) dtype = field->varint;
    if (field->number == 4) content = field->bytes;
    if (field->number == 5) {  // float_val, packed or not
      uint64_t bits = field->varint;
      if (field->wire_type == 2 && field->bytes.size() >= 4)
        std::memcpy(&bits, field->bytes.data(), 4);
      value = FloatOf(bits);
    }
  }
  if (value.has_value()) return value;
  if (dtype == kFloatType && content.size() == sizeof(float)) {
    uint64_t bits = 0;
    std::memcpy(&bits, content.data(), sizeof(float));
    return FloatOf(bits);
  }
  if (dtype == kDoubleType && content.size() == sizeof(double)) {
    double number = 0;
    std::memcpy(&number, content.data(), sizeof(double));
    return number;
  }
  return std::nullopt;
}

// A Summary.Value.
void ReadSummaryValue(absl::string_view bytes, int64_t step, std::vector<EventScalar>* scalars) {
  EventScalar scalar;
  std::optional<double> value;
  MessageReader reader(bytes);
  while (const auto field = reader.Next()) {
    if (field->number == 1 && field->wire_type == 2) scalar.tag = std::string(field->bytes);
    if (field->number == 2 && field->wire_type == 5) value = FloatOf(field->varint);
    if (field->number == 8 && field->wire_type == 2) value = ScalarOf(field->bytes);
  }
  if (!value.has_value()) return;
  scalar.step = step;
  scalar.value = *value;
  scalars->push_back(std::move(scalar));
}

void ReadEvent(absl::string_view bytes, std::vector<EventScalar>* scalars) {
  int64_t step = 0;
  absl::string_view summary;
  MessageReader reader(bytes);
  while (const auto field = reader.Next()) {
    if (field->number == 2 && field->wire_type == 0) step = static_cast<int64_t>(field->varint);
    if (field->number == 5 && field->wire_type == 2) summary = field->bytes;
  }
  MessageReader values(summary);
  while (const auto field = values.Next()) {
    if (field->number == 1 && field->wire_type == 2) ReadSummaryValue(field->bytes, step, scalars);
  }
}

}  // namespace

std::vector<EventScalar> ReadEventScalars(absl::string_view file) {
  constexpr size_t kBefore = 12, kAfter = 4;
  std::vector<EventScalar> scalars;
  while (file.size() >= kBefore + kAfter) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    if (length > file.size() - kBefore - kAfter) break;
    ReadEvent(file.substr(kBefore, length), &scalars);
    file.remove_prefix(kBefore + length + kAfter);
  }
  return scalars;
}

}  // namespace weft::platform
