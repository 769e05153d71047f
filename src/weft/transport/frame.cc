// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/frame.h"

#include <bit>
#include <cstring>

namespace weft::transport {
namespace {

static_assert(std::endian::native == std::endian::little,
              "frames are copied as they lie in memory");

template <typename T>
void Put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

template <typename T>
T Get(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

void AppendShort(std::string* out, absl::string_view text) {
  const uint16_t size = static_cast<uint16_t>(text.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(text.data(), text.size());
}

bool TakeShort(absl::string_view* in, size_t limit, std::string* out) {
  if (in->size() < sizeof(uint16_t)) return false;
  const size_t size = Get<uint16_t>(in->data());
  in->remove_prefix(sizeof(uint16_t));
  if (size > limit || size > in->size()) return false;
  out->assign(in->data(), size);
  in->remove_prefix(size);
  return true;
}

// A name goes into logs: no control bytes.
bool IsPrintable(absl::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c == 0x7f) return false;
  }
  return true;
}

// Only these carry more than a header.
bool MayHaveMeta(FrameKind kind) {
  return kind == FrameKind::kHello || kind == FrameKind::kGoodbye || kind == FrameKind::kShare ||
         kind == FrameKind::kLent || kind == FrameKind::kWay || IsCallerKind(kind);
}

}  // namespace

absl::string_view FrameKindName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
      return "Hello";
    case FrameKind::kStepStart:
      return "StepStart";
    case FrameKind::kStepDone:
      return "StepDone";
    case FrameKind::kAbort:
      return "Abort";
    case FrameKind::kTensor:
      return "Tensor";
    case FrameKind::kMembers:
      return "Members";
    case FrameKind::kCredit:
      return "Credit";
    case FrameKind::kPing:
      return "Ping";
    case FrameKind::kPong:
      return "Pong";
    case FrameKind::kGoodbye:
      return "Goodbye";
    case FrameKind::kShare:
      return "Share";
    case FrameKind::kShareReply:
      return "ShareReply";
    case FrameKind::kLent:
      return "Lent";
    case FrameKind::kWay:
      return "Way";
  }
  return "Unknown";
}

bool IsBulk(FrameKind kind) { return kind == FrameKind::kTensor; }

bool IsCallerKind(FrameKind kind) {
  return kind >= FrameKind::kStepStart && kind <= FrameKind::kMembers;
}

void EncodeHeader(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out) {
  std::byte* at = out.data();
  Put(at, kFrameMagic);
  Put(at + 4, kFrameVersion);
  Put(at + 5, static_cast<uint8_t>(header.kind));
  Put(at + 6, header.flags);
  Put(at + 8, header.graph);
  Put(at + 12, header.key);
  Put(at + 16, header.step);
  Put(at + 24, header.body_bytes);
  Put(at + 32, header.meta_bytes);
  Put(at + 36, uint32_t{0});
}

StatusOr<FrameHeader> ParseHeader(std::span<const std::byte, kHeaderBytes> bytes,
                                  uint64_t max_body_bytes) {
  const std::byte* at = bytes.data();
  if (Get<uint32_t>(at) != kFrameMagic) return InvalidArgument("Not a weft frame: wrong magic");
  const uint8_t version = Get<uint8_t>(at + 4);
  if (version != kFrameVersion) {
    return FailedPrecondition("Frame of another protocol version: got ", version, ", expected ",
                              kFrameVersion);
  }
  FrameHeader header;
  header.kind = static_cast<FrameKind>(Get<uint8_t>(at + 5));
  header.flags = Get<uint16_t>(at + 6);
  header.graph = Get<uint32_t>(at + 8);
  header.key = Get<uint32_t>(at + 12);
  header.step = Get<uint64_t>(at + 16);
  header.body_bytes = Get<uint64_t>(at + 24);
  header.meta_bytes = Get<uint32_t>(at + 32);
  const absl::string_view kind = FrameKindName(header.kind);
  if (kind == "Unknown") {
    return InvalidArgument("Unknown frame kind: ", static_cast<int>(header.kind));
  }
  if ((header.flags & ~kCallerFlags) != 0 || Get<uint32_t>(at + 36) != 0) {
    return InvalidArgument("Reserved bits are set in a frame of kind ", kind);
  }
  if (header.meta_bytes > kMaxMetaBytes) {
    return InvalidArgument("Meta of a frame is too long: ", header.meta_bytes, " bytes, at most ",
                           kMaxMetaBytes, ", kind ", kind);
  }
  if (header.body_bytes > max_body_bytes) {
    return InvalidArgument("Body of a frame is too long: ", header.body_bytes, " bytes, at most ",
                           max_body_bytes, ", kind ", kind);
  }
  if (header.meta_bytes > 0 && !MayHaveMeta(header.kind)) {
    return InvalidArgument("Frame may not carry meta: kind ", kind);
  }
  if (header.body_bytes > 0 && !IsCallerKind(header.kind)) {
    return InvalidArgument("Frame may not carry a body: kind ", kind);
  }
  if (header.kind == FrameKind::kHello && header.meta_bytes > kMaxHelloBytes) {
    return InvalidArgument("Hello is too long: ", header.meta_bytes, " bytes, at most ",
                           kMaxHelloBytes);
  }
  return header;
}

StatusOr<std::string> EncodeHello(const Hello& hello) {
  if (hello.token.size() > kMaxTokenBytes) {
    return InvalidArgument("Token of a task is too long: ", hello.token.size(), " bytes, at most ",
                           kMaxTokenBytes);
  }
  if (hello.task.empty() || hello.task.size() > kMaxTaskBytes || !IsPrintable(hello.task)) {
    return InvalidArgument("Task name must be 1 to ", kMaxTaskBytes, " printable bytes, got ",
                           hello.task.size(), " bytes");
  }
  std::string out;
  AppendShort(&out, hello.token);
  AppendShort(&out, hello.task);
  out.append(reinterpret_cast<const char*>(&hello.incarnation), sizeof(hello.incarnation));
  out.append(reinterpret_cast<const char*>(&hello.credit_bytes), sizeof(hello.credit_bytes));
  return out;
}

StatusOr<Hello> ParseHello(absl::string_view meta) {
  Hello hello;
  if (!TakeShort(&meta, kMaxTokenBytes, &hello.token) ||
      !TakeShort(&meta, kMaxTaskBytes, &hello.task) || meta.size() != 16) {
    return InvalidArgument("Hello is malformed");
  }
  if (hello.task.empty() || !IsPrintable(hello.task)) {
    return InvalidArgument("Hello carries no printable task name");
  }
  hello.incarnation = Get<uint64_t>(meta.data());
  hello.credit_bytes = Get<uint64_t>(meta.data() + 8);
  return hello;
}

bool SameToken(absl::string_view expected, absl::string_view given) {
  // Walks the given one whatever `expected` is, so that time tells nothing about the secret.
  volatile unsigned char difference = expected.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char mine = expected.empty() ? '\0' : expected[i % expected.size()];
    difference = difference | static_cast<unsigned char>(mine ^ given[i]);
  }
  return difference == 0;
}

}  // namespace weft::transport
