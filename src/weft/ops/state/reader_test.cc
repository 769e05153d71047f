// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/memory_files.h"
#include "weft/ops/state/queue_kernel.h"
#include "weft/ops/state/reader_kernel.h"

namespace weft::ops::state {
namespace {

// A file of one record, its name; that of an empty name has none.
class NamedSource final : public RecordSource {
 public:
  explicit NamedSource(std::string name) : name_(std::move(name)) {}
  StatusOr<bool> Next(Record* record, bool* at_end) override {
    *at_end = true;
    record->value = name_;
    return !name_.empty();
  }

 private:
  const std::string name_;
};

class ReaderTest : public ::testing::Test {
 protected:
  void Put(const std::string& name) {
    names_->Enqueue(caller_, {{Tensor::Scalar(name)}},
                    [](const Status& status) { EXPECT_EQ(status, absl::OkStatus()); });
  }
  // What a call came to: empty while it waits.
  std::shared_ptr<std::optional<StatusOr<std::string>>> Read() {
    auto call = std::make_shared<std::optional<StatusOr<std::string>>>();
    reader_->Read(caller_, names_, nullptr, 1, [call](StatusOr<Reader::Records> records) {
      EXPECT_FALSE(call->has_value());
      if (records.ok()) {
        call->emplace(records->at(0).value);
      } else {
        call->emplace(records.status());
      }
    });
    return call;
  }

  Cancellation cancellation_;
  Caller caller_{&cancellation_};
  Ref<Queue> names_ = MakeQueue({.kind = "FIFOQueue",
                                 .name = "names",
                                 .capacity = 1 << 30,
                                 .types = {DType::kString},
                                 .shapes = {Shape()}});
  Ref<Reader> reader_ = MakeRef<Reader>(
      "NamedReader", "r",
      [](FileSystem*, const std::string& name) -> StatusOr<std::unique_ptr<RecordSource>> {
        if (name == "gone") return NotFound("No such file: ", name);
        return std::make_unique<NamedSource>(name);
      });
};

TEST_F(ReaderTest, PassesManyEmptyFiles) {
  for (int i = 0; i < 100000; ++i) Put("");
  Put("last");
  const auto read = Read();
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->value(), "last");
  EXPECT_EQ(reader_->counts().works, 100001);
  EXPECT_EQ(reader_->counts().records, 1);
}

TEST_F(ReaderTest, CallersWaitForNamesInOrder) {
  const auto first = Read();
  const auto second = Read();
  const auto third = Read();
  EXPECT_FALSE(first->has_value());
  Put("");
  Put("a");
  EXPECT_EQ((*first)->value(), "a");
  Put("gone");
  ASSERT_TRUE(second->has_value());
  EXPECT_TRUE(absl::IsNotFound((*second)->status()));
  EXPECT_FALSE(third->has_value());
  names_->CloseQueue(caller_, false, [](const Status&) {});
  ASSERT_TRUE(third->has_value());
  EXPECT_TRUE(absl::IsOutOfRange((*third)->status()));
}

TEST(FixedLengthRecordsTest, HopsPastTheEnd) {
  MemoryFileSystem files;
  ASSERT_EQ(WriteFile(files, "f", "hab"), absl::OkStatus());
  for (const int64_t hop : {int64_t{3}, std::numeric_limits<int64_t>::max()}) {
    const auto open =
        FixedLengthRecords({.header_bytes = 1, .record_bytes = 1, .hop_bytes = hop}).value();
    const auto source = open(&files, "f").value();
    Record record;
    bool at_end = false;
    EXPECT_TRUE(source->Next(&record, &at_end).value());
    EXPECT_EQ(record.value, "a");
    EXPECT_FALSE(source->Next(&record, &at_end).value());
    EXPECT_TRUE(at_end);
  }
}

}  // namespace
}  // namespace weft::ops::state
