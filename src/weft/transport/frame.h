// SPDX-License-Identifier: Apache-2.0
// The frame: what crosses between two tasks. A fixed header of 40 little-endian bytes, `meta` bytes
// encoded by the caller, then the body's bytes.
//
//    0  u32 magic "WEFT"     8  u32 graph     24  u64 body bytes     36  u32 zero
//    4  u8  version         12  u32 key       32  u32 meta bytes
//    5  u8  kind            16  u64 step
//    6  u16 flags
//
// The functions are pure; parsing takes bytes from anywhere and refuses what it does not know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::transport {

inline constexpr uint32_t kFrameMagic = 0x54464557;  // "WEFT"
inline constexpr uint8_t kFrameVersion = 2;
inline constexpr size_t kHeaderBytes = 40;
inline constexpr uint32_t kMaxMetaBytes = 64 * 1024;
inline constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 40;
inline constexpr uint16_t kCallerFlags = 0x00ff;  // the other bits are zero in this version

// The caller sends StepStart to Members; the others belong to the transport.
enum class FrameKind : uint8_t {
  kHello = 1,      // first frame of each direction: who, and the token
  kStepStart = 2,  // to a task: run step `step` of graph `graph`
  kStepDone = 3,   // back: the task's part is done
  kAbort = 4,      // either way: the step is dead, meta says why
  kTensor = 5,     // producer to consumer: the tensor of edge `key`
  kMembers = 6,    // who is alive, as the sender sees it
  kCredit = 7,     // `step` more bytes of tensors may be sent
  kPing = 8,       // answered by a Pong with the same `step`
  kPong = 9,
  kGoodbye = 10,     // last frame: an orderly end, meta says why
  kShare = 11,       // to a peer of this host: meta says how to map what is lent to it
  kShareReply = 12,  // `step` is the process that mapped it, 0 if that could not be done
  kLent = 13,        // a Tensor whose body lies in the sender's shared memory
  kWay = 14,         // after Hello: meta says how the carrier of both reaches the sender
};

struct FrameHeader {
  FrameKind kind = FrameKind::kPing;
  uint16_t flags = 0;       // kCallerFlags are the caller's
  uint32_t graph = 0;       // a registered graph, caller's number
  uint32_t key = 0;         // an edge of it, caller's number
  uint64_t step = 0;        // step id, or the value of a Credit, Ping or Pong
  uint64_t body_bytes = 0;  // filled in by Peer::Send
  uint32_t meta_bytes = 0;  // filled in by Peer::Send
};

// "Tensor", "StepStart", ...; "Unknown" for other numbers.
absl::string_view FrameKindName(FrameKind kind);

// True for Tensor: frames that cost credit and let control frames pass.
bool IsBulk(FrameKind kind);

// True for the kinds that a caller of Peer::Send may use.
bool IsCallerKind(FrameKind kind);

void EncodeHeader(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out);

// InvalidArgument if the bytes are no header of ours, FailedPrecondition if they are one of another
// version. `max_body_bytes` is the receiver's own limit.
StatusOr<FrameHeader> ParseHeader(std::span<const std::byte, kHeaderBytes> bytes,
                                  uint64_t max_body_bytes = kMaxBodyBytes);

// What the first frame of each direction says. Its header's `key` is the number of what carries the
// frames that follow (carrier.h), 0 for the connection itself.
struct Hello {
  std::string token;          // shared secret of the cluster, at most kMaxTokenBytes
  std::string task;           // "/job:worker/task:1", at most kMaxTaskBytes
  uint64_t incarnation = 0;   // a new random number for each start of the task
  uint64_t credit_bytes = 0;  // bulk bytes that may be under way to this side
};

inline constexpr size_t kMaxTokenBytes = 1024;
inline constexpr size_t kMaxTaskBytes = 512;
inline constexpr size_t kMaxHelloBytes = 2 + kMaxTokenBytes + 2 + kMaxTaskBytes + 16;

// InvalidArgument if a field is over its limit.
StatusOr<std::string> EncodeHello(const Hello& hello);
StatusOr<Hello> ParseHello(absl::string_view meta);

// Compares without telling by its time where the first difference is.
bool SameToken(absl::string_view expected, absl::string_view given);

}  // namespace weft::transport
