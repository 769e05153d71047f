// SPDX-License-Identifier: Apache-2.0
// Protocol buffer messages of a program's own, whose descriptors come with the graph.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/kernel/kernel_context.h"
#include "weft/tensor/dtype.h"

namespace weft::ops::io {

// One message type with all that its descriptor needs. Thread-safe once loaded.
class MessageType {
 public:
  // `source` is `local://` (messages that this program is built with, such as tensorflow.Example),
  // `bytes://` and a serialized FileDescriptorSet, or the path of a file of one. InvalidArgument
  // for a set that makes no sense and for a message that is not in it.
  static StatusOr<std::unique_ptr<MessageType>> Load(const std::string& source,
                                                     const std::string& name, FileSystem* files);

  // The field, or the extension by its full name; InvalidArgument if there is none.
  StatusOr<const google::protobuf::FieldDescriptor*> Field(const std::string& name) const;

  // The message as binary bytes, from text (`is_text`) or from bytes that nobody trusts. DataLoss
  // if it is not one; Unimplemented for a message that is made of more than 2,000 other types.
  StatusOr<std::string> Reserialize(const std::string& bytes, bool is_text) const;

 private:
  MessageType() = default;

  google::protobuf::DescriptorPool own_;
  const google::protobuf::DescriptorPool* pool_ = nullptr;
  const google::protobuf::Descriptor* descriptor_ = nullptr;
  size_t num_types_ = 0;  // that a message of this type may hold, itself among them
  mutable google::protobuf::DynamicMessageFactory factory_;
};

// A message type that a kernel names, loaded at its first call, because only calls know the files.
// Thread-safe.
class NamedMessageType {
 public:
  NamedMessageType(std::string source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}
  StatusOr<const MessageType*> Get(const KernelContext& c);

 private:
  const std::string source_;
  const std::string name_;
  absl::Mutex mutex_;
  std::unique_ptr<MessageType> loaded_ ABSL_GUARDED_BY(mutex_);
};

// Whether values of a field may be elements of `dtype`: its own type, and wider ones of its kind.
bool FieldHolds(google::protobuf::FieldDescriptor::Type type, DType dtype);

}  // namespace weft::ops::io
