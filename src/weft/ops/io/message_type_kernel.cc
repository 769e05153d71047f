// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/io/message_type_kernel.h"

#include <utility>
#include <vector>

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"

#include "base/files.h"

namespace weft::ops::io {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

// Keeps the first error, and keeps the library from writing it to the log.
class FirstError final : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element,
                const google::protobuf::Message*, ErrorLocation,
                const std::string& message) override {
    if (text.empty()) text = absl::StrCat(file, ": ", element, ": ", message);
  }
  std::string text;
};

class Silence final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

Status BuildPool(const std::string& bytes, DescriptorPool* pool) {
  FileDescriptorSet set;
  if (!set.ParseFromString(bytes)) {
    return InvalidArgument("descriptor_source is no serialized FileDescriptorSet");
  }
  for (const FileDescriptorProto& file : set.file()) {
    FirstError error;
    if (pool->BuildFileCollectingErrors(file, &error) == nullptr) {
      return InvalidArgument("Failed to load FileDescriptorProto '", file.name(),
                             "': ", error.text);
    }
  }
  return absl::OkStatus();
}

// The library makes the prototypes of all types that a message may hold one inside of another, on
// one thread's stack.
constexpr size_t kMostTypes = 2000;

size_t CountTypes(const Descriptor* root) {
  std::vector<const Descriptor*> open = {root};
  absl::flat_hash_set<const Descriptor*> found = {root};
  while (!open.empty()) {
    const Descriptor* const type = open.back();
    open.pop_back();
    for (int i = 0; i < type->field_count(); ++i) {
      const Descriptor* const inner = type->field(i)->message_type();
      if (inner != nullptr && found.insert(inner).second) open.push_back(inner);
    }
  }
  return found.size();
}

}  // namespace

StatusOr<std::unique_ptr<MessageType>> MessageType::Load(const std::string& source,
                                                         const std::string& name,
                                                         FileSystem* files) {
  std::unique_ptr<MessageType> type(new MessageType());
  absl::string_view rest = source;
  if (source.empty() || source == "local://") {
    type->pool_ = DescriptorPool::generated_pool();
  } else if (absl::ConsumePrefix(&rest, "bytes://")) {
    WEFT_RETURN_IF_ERROR(BuildPool(std::string(rest), &type->own_));
    type->pool_ = &type->own_;
  } else {
    if (files == nullptr) return FailedPrecondition("This session has no file system");
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(*files, source));
    WEFT_RETURN_IF_ERROR(BuildPool(bytes, &type->own_));
    type->pool_ = &type->own_;
  }
  type->descriptor_ = type->pool_->FindMessageTypeByName(name);
  if (type->descriptor_ == nullptr) {
    return InvalidArgument("No descriptor found for message type ", name);
  }
  type->num_types_ = CountTypes(type->descriptor_);
  return type;
}

StatusOr<const FieldDescriptor*> MessageType::Field(const std::string& name) const {
  if (const FieldDescriptor* field = descriptor_->FindFieldByName(name)) return field;
  const FieldDescriptor* extension = pool_->FindExtensionByName(name);
  if (extension != nullptr && extension->containing_type() == descriptor_) return extension;
  return InvalidArgument("Unknown field: ", name, " in message type ", descriptor_->full_name());
}

StatusOr<std::string> MessageType::Reserialize(const std::string& bytes, bool is_text) const {
  if (num_types_ > kMostTypes) {
    return Unimplemented("Message type ", descriptor_->full_name(), " is made of ", num_types_,
                         " types, expected at most ", kMostTypes,
                         ": decode binary messages without `sanitize`");
  }
  const std::unique_ptr<google::protobuf::Message> message(
      factory_.GetPrototype(descriptor_)->New());
  if (is_text) {
    Silence silence;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&silence);
    parser.SetRecursionLimit(100);
    if (!parser.ParseFromString(bytes, message.get())) {
      return DataLoss("Unable to parse text protobuf");
    }
  } else if (!message->ParsePartialFromString(bytes) || !message->IsInitialized()) {
    return DataLoss("Unable to parse binary protobuf");
  }
  return message->SerializePartialAsString();
}

StatusOr<const MessageType*> NamedMessageType::Get(const KernelContext& c) {
  absl::MutexLock lock(&mutex_);
  if (loaded_ == nullptr) {
    WEFT_ASSIGN_OR_RETURN(loaded_, MessageType::Load(source_, name_, c.environment().files));
  }
  return loaded_.get();
}

bool FieldHolds(FieldDescriptor::Type type, DType dtype) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
      return dtype == DType::kDouble;
    case FieldDescriptor::TYPE_FLOAT:
      return dtype == DType::kFloat || dtype == DType::kDouble;
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_SINT64:
      return dtype == DType::kInt64;
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return dtype == DType::kUint64;
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SINT32:
      return dtype == DType::kInt32 || dtype == DType::kInt64;
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return dtype == DType::kUint32 || dtype == DType::kUint64;
    case FieldDescriptor::TYPE_BOOL:
      return dtype == DType::kBool;
    case FieldDescriptor::TYPE_ENUM:
      return dtype == DType::kInt32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_GROUP:
    case FieldDescriptor::TYPE_MESSAGE:
      return dtype == DType::kString;
  }
  return false;
}

}  // namespace weft::ops::io
