// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/tensor_bundle.h"

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/faulty_files.h"
#include "base/mapped_files.h"
#include "base/memory_files.h"
#include "weft/storage/bundle_format.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Iota(const Shape& shape, float start = 0) {
  Tensor tensor = Tensor::Zeros(DType::kFloat, shape).value();
  for (float& element : tensor.mutable_span<float>()) element = start++;
  return tensor;
}

std::string Bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) {
    return std::string(reinterpret_cast<const char*>(tensor.bytes()), tensor.size_bytes());
  }
  std::string all;
  for (const std::string& text : tensor.span<std::string>())
    absl::StrAppend(&all, text.size(), ":", text);
  return all;
}

// A small checkpoint of every kind of entry.
Status WriteSmall(FileSystem& files, const std::string& prefix, float start = 1) {
  WEFT_ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(files, prefix));
  WEFT_RETURN_IF_ERROR(writer->Add("w", Iota({2, 3}, start)));
  WEFT_RETURN_IF_ERROR(writer->Add("names", Tensor::Vector<std::string>({"a", "", "ccc"})));
  for (int row = 0; row < 2; ++row) {
    WEFT_ASSIGN_OR_RETURN(const TensorSlice slice,
                          TensorSlice::Parse(absl::StrFormat("%d,1:-", row)));
    WEFT_RETURN_IF_ERROR(writer->AddSlice("part", {2, 2}, slice, Iota({1, 2}, start + 2 * row)));
  }
  WEFT_RETURN_IF_ERROR(writer->Add("b", Tensor::Scalar<int64_t>(7)));
  return writer->Finish();
}

// Everything in a bundle as text, or the first error.
StatusOr<std::string> Dump(FileSystem& files, const std::string& prefix) {
  WEFT_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(files, prefix));
  WEFT_ASSIGN_OR_RETURN(const std::vector<BundleTensor> tensors, reader->List());
  std::string all;
  for (const BundleTensor& info : tensors) {
    WEFT_ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(info.name));
    absl::StrAppend(&all, info.name, " ", DTypeName(tensor.dtype()), tensor.shape().ToString(), " ",
                    Bytes(tensor), "\n");
  }
  return all;
}

TEST(TensorBundleTest, LargeTensorsStayInAFileThatIsMapped) {
  MappingFileSystem files;
  const std::string prefix = ::testing::TempDir() + "/mapped/model";
  auto writer = BundleWriter::Create(files, prefix).value();
  const Tensor large = Iota({100, 300});
  ASSERT_TRUE(writer->Add("a", Tensor::Scalar<int64_t>(7)).ok());
  ASSERT_TRUE(writer->Add("b", large).ok());
  ASSERT_TRUE(writer->Add("c", Tensor::Vector<std::string>({std::string(2, 'x')})).ok());
  ASSERT_TRUE(writer->Add("d", large).ok());  // behind texts: at no multiple of its elements' size
  ASSERT_TRUE(writer->Finish().ok());
  auto reader = BundleReader::Open(files, prefix).value();
  StatusOr<Tensor> mapped = reader->Read("b");
  const StatusOr<Tensor> copied = reader->Read("d");
  ASSERT_TRUE(mapped.ok() && copied.ok());
  // Where it lies in the file, behind eight bytes; memory of the pool is aligned.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->bytes()) % 64, 8u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copied->bytes()) % 64, 0u);
  EXPECT_EQ(Bytes(*mapped), Bytes(large));
  EXPECT_EQ(Bytes(*copied), Bytes(large));
  reader.reset();
  EXPECT_EQ(Bytes(*mapped), Bytes(large));  // it outlives its reader
  mapped->mutable_span<float>()[0] = -1;    // which the file does not see
  EXPECT_EQ(Bytes(BundleReader::Open(files, prefix).value()->Read("b").value()), Bytes(large));
  // A version that was written wrongly.
  const std::string path = BundleDataPath(prefix, 0, 1);
  std::string bytes = ReadFile(files, path).value();
  bytes[5000] = static_cast<char>(bytes[5000] + 1);
  ASSERT_TRUE(WriteFileAtomically(files, path, bytes).ok());
  reader = BundleReader::Open(files, prefix).value();
  EXPECT_THAT(std::string(reader->Read("b").status().message()), HasSubstr("'b' is damaged (bad"));
}

TEST(TensorBundleTest, EveryDTypeRoundTrips) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "d/model").value();
  std::vector<Tensor> tensors;
  for (int number = 1; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!IsPlain(dtype)) continue;
    Tensor tensor = Tensor::Zeros(dtype, {3, 2}).value();
    for (size_t i = 0; i < tensor.size_bytes(); ++i) {
      tensor.bytes()[i] = static_cast<std::byte>(dtype == DType::kBool ? i & 1 : 31 * i + 5);
    }
    ASSERT_TRUE(writer->Add(DTypeName(dtype), tensor).ok());
    tensors.push_back(tensor);
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = BundleReader::Open(files, "d/model").value();
  for (const Tensor& tensor : tensors) {
    const Tensor back = reader->Read(DTypeName(tensor.dtype())).value();
    EXPECT_EQ(back.dtype(), tensor.dtype());
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(Bytes(back), Bytes(tensor));
  }
  EXPECT_EQ(tensors.size(), 29u);
}

TEST(TensorBundleTest, StringsScalarsAndEmptyTensors) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m").value();
  const Tensor strings =
      Tensor::Vector<std::string>({"", "a", std::string(300, 'x'), std::string("\0", 1)});
  ASSERT_TRUE(writer->Add("strings", strings).ok());
  ASSERT_TRUE(writer->Add("none", Tensor::Zeros(DType::kString, {0}).value()).ok());
  ASSERT_TRUE(writer->Add("empty", Tensor::Zeros(DType::kFloat, {4, 0}).value()).ok());
  ASSERT_TRUE(writer->Add("scalar", Tensor::Scalar<double>(1.5)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = BundleReader::Open(files, "m").value();
  EXPECT_EQ(Bytes(reader->Read("strings").value()), Bytes(strings));
  EXPECT_EQ(reader->Read("none").value().shape(), Shape({0}));
  EXPECT_EQ(reader->Read("empty").value().shape(), Shape({4, 0}));
  EXPECT_EQ(reader->Read("scalar").value().scalar<double>(), 1.5);
  EXPECT_EQ(reader->Describe("empty").value().dtype, DType::kFloat);
  EXPECT_TRUE(reader->Contains("none").value());
  EXPECT_FALSE(reader->Contains("").value());
}

TEST(TensorBundleTest, VariantsRoundTrip) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m").value();
  const Variant list{MakeRef<EncodedVariant>("list", "meta", std::vector<Tensor>{Iota({2})})};
  ASSERT_TRUE(writer->Add("v", Tensor::Vector<Variant>({list, Variant()})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Tensor back = BundleReader::Open(files, "m").value()->Read("v").value();
  const auto* first = dynamic_cast<const EncodedVariant*>(back.data<Variant>()[0].value.get());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->metadata(), "meta");
  EXPECT_EQ(Bytes(first->tensors()[0]), Bytes(Iota({2})));
  EXPECT_FALSE(back.data<Variant>()[1].value);
}

TEST(TensorBundleTest, SlicesAreJoinedAndCutAgain) {
  MemoryFileSystem files;
  const Shape full = {5, 6};
  const Tensor whole = Iota(full);
  const TensorSlice all = TensorSlice::Full(2).Within(full).value();
  auto writer = BundleWriter::Create(files, "m").value();
  for (const char* text : {"0,3:0,2", "0,3:2,4", "3,2:-"}) {
    const TensorSlice slice = TensorSlice::Parse(text).value();
    const TensorSlice inside = slice.Within(full).value();
    Tensor part = Tensor::Zeros(DType::kFloat, inside.shape()).value();
    CopyShared(all, whole, inside, &part);
    ASSERT_TRUE(writer->AddSlice("p", full, slice, part).ok());
  }
  ASSERT_TRUE(writer->AddSlice("q", full, TensorSlice::Full(2), whole).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const auto reader = BundleReader::Open(files, "m").value();
  const std::vector<BundleTensor> list = reader->List().value();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].slices.size(), 3u);
  EXPECT_TRUE(list[1].slices.empty());
  for (const char* name : {"p", "q"}) {
    EXPECT_EQ(Bytes(reader->Read(name).value()), Bytes(whole));
    for (const char* text : {"-:-", "2,2:1,3", "0,1:0,1", "4,1:-", "-:5,1"}) {
      const TensorSlice slice = TensorSlice::Parse(text).value();
      const TensorSlice inside = slice.Within(full).value();
      Tensor part = Tensor::Zeros(DType::kFloat, inside.shape()).value();
      CopyShared(all, whole, inside, &part);
      EXPECT_EQ(Bytes(reader->ReadSlice(name, slice).value()), Bytes(part)) << name << text;
    }
    EXPECT_FALSE(reader->ReadSlice(name, TensorSlice::Parse("0,9:-").value()).ok());
    EXPECT_FALSE(reader->ReadSlice(name, TensorSlice::Parse("-").value()).ok());
  }
}

TEST(TensorBundleTest, SlicesMustCoverWhatIsRead) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m").value();
  ASSERT_TRUE(writer->AddSlice("p", {4}, TensorSlice::Parse("0,2").value(), Iota({2})).ok());
  ASSERT_TRUE(writer->AddSlice("o", {4}, TensorSlice::Parse("0,3").value(), Iota({3})).ok());
  ASSERT_TRUE(writer->AddSlice("o", {4}, TensorSlice::Parse("2,2").value(), Iota({2})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = BundleReader::Open(files, "m").value();
  EXPECT_TRUE(reader->ReadSlice("p", TensorSlice::Parse("1,1").value()).ok());
  const Status gap = reader->Read("p").status();
  EXPECT_TRUE(absl::IsDataLoss(gap)) << gap;
  EXPECT_THAT(std::string(gap.message()), HasSubstr("'p' cover 2 of 4 elements"));
  EXPECT_THAT(std::string(reader->Read("o").status().message()), HasSubstr("overlap"));
}

TEST(TensorBundleTest, WriterRejectsWhatCannotBeRight) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m").value();
  const TensorSlice half = TensorSlice::Parse("0,2").value();
  EXPECT_FALSE(writer->Add("", Iota({1})).ok());
  EXPECT_FALSE(writer->Add(absl::string_view("\0x", 2), Iota({1})).ok());
  EXPECT_FALSE(writer->Add("r", Tensor::Scalar(ResourceHandle())).ok());
  EXPECT_FALSE(writer->Add("u", Tensor()).ok());
  ASSERT_TRUE(writer->Add("w", Iota({4})).ok());
  EXPECT_FALSE(writer->Add("w", Iota({4})).ok());
  EXPECT_FALSE(writer->AddSlice("w", {4}, half, Iota({2})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, half, Iota({3})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {1}, half, Iota({2})).ok());
  ASSERT_TRUE(writer->AddSlice("p", {4}, half, Iota({2})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, half, Iota({2})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {5}, half, Iota({2})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, half, Tensor::Vector<int32_t>({1, 2})).ok());
  EXPECT_FALSE(writer->Add("p", Iota({4})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_FALSE(writer->Finish().ok());
  EXPECT_FALSE(writer->Add("late", Iota({1})).ok());
  EXPECT_FALSE(BundleWriter::Create(files, "m", {.data_alignment = 0}).ok());
}

TEST(TensorBundleTest, TensorsCanBeAligned) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m", {.data_alignment = 64}).value();
  ASSERT_TRUE(writer->Add("a", Tensor::Scalar<int8_t>(1)).ok());
  ASSERT_TRUE(writer->Add("b", Iota({3})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(files.Stat("m.data-00000-of-00001").value().size_bytes, 64u + 12);
  EXPECT_EQ(Bytes(BundleReader::Open(files, "m").value()->Read("b").value()), Bytes(Iota({3})));
}

TEST(TensorBundleTest, MissingFilesAndNamesAreNamed) {
  MemoryFileSystem files;
  Status status = BundleReader::Open(files, "nowhere/model").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere/model.index"));
  ASSERT_TRUE(WriteSmall(files, "m").ok());
  const auto reader = BundleReader::Open(files, "m").value();
  status = reader->Read("bias").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "Key bias not found in checkpoint m");
  ASSERT_TRUE(files.Delete("m.data-00000-of-00001").ok());
  status = reader->Read("w").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'w'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("m.data-00000-of-00001"));
}

TEST(TensorBundleTest, EveryCutAndEveryFlippedBitIsSeenOrHarmless) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteSmall(files, "m").ok());
  const std::string good = Dump(files, "m").value();
  for (const std::string path : {"m.index", "m.data-00000-of-00001"}) {
    const std::string bytes = ReadFile(files, path).value();
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_TRUE(WriteFile(files, path, bytes.substr(0, size)).ok());
      const Status status = Dump(files, "m").status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << path << " " << size << " " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    }
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string bad = bytes;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_TRUE(WriteFile(files, path, bad).ok());
      const StatusOr<std::string> got = Dump(files, "m");
      if (got.ok()) {
        EXPECT_EQ(*got, good);
        EXPECT_EQ(path, "m.index");  // its footer's padding; the data has no byte to spare
      } else {
        EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
      }
    }
    ASSERT_TRUE(WriteFile(files, path, bytes).ok());
  }
}

TEST(TensorBundleTest, AFullDiskOrAnyFailedCallLeavesTheOldCheckpoint) {
  MemoryFileSystem memory;
  FaultyFileSystem counter(&memory);
  ASSERT_TRUE(WriteSmall(counter, "m").ok());
  const int64_t calls = counter.calls();
  const std::string old = Dump(memory, "m").value();
  const int64_t size =
      static_cast<int64_t>(memory.Stat("m.index").value().size_bytes +
                           memory.Stat("m.data-00000-of-00001").value().size_bytes);
  for (int64_t room = 0; room < size; ++room) {
    FaultyFileSystem files(&memory);
    files.LimitBytes(room);
    const Status status = WriteSmall(files, "m", 100);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(Dump(memory, "m").value(), old);
  }
  EXPECT_THAT(memory.List("").value(), ElementsAre("m.data-00000-of-00001", "m.index"));
  for (int64_t call = 1; call <= calls; ++call) {
    FaultyFileSystem files(&memory);
    files.FailCall(call, Unavailable("the disk is away"));
    EXPECT_TRUE(absl::IsUnavailable(WriteSmall(files, absl::StrCat("new", call)))) << call;
    const StatusOr<std::string> got = Dump(memory, absl::StrCat("new", call));
    if (got.ok()) {
      EXPECT_EQ(*got, old);  // only the last step, syncing the folder, failed
      EXPECT_EQ(call, calls);
    } else {
      EXPECT_TRUE(absl::IsNotFound(got.status())) << got.status();
    }
  }
}

TEST(TensorBundleTest, APowerCutLeavesTheOldCheckpointOrTheNew) {
  for (const bool finish : {false, true}) {
    MemoryFileSystem files;
    ASSERT_TRUE(WriteSmall(files, "m", 1).ok());
    const std::string old = Dump(files, "m").value();
    auto writer = BundleWriter::Create(files, "m").value();
    ASSERT_TRUE(writer->Add("w", Iota({1000})).ok());
    if (finish) {
      ASSERT_TRUE(writer->Finish().ok());
    }
    files.LosePower();
    const std::string now = Dump(files, "m").value();
    EXPECT_EQ(now == old, !finish);
  }
}

TEST(TensorBundleTest, ManyVariables) {
  MemoryFileSystem files;
  auto writer = BundleWriter::Create(files, "m").value();
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(
        writer->Add(absl::StrCat("layer/", i, "/kernel"), Iota({2}, static_cast<float>(i))).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = BundleReader::Open(files, "m").value();
  EXPECT_EQ(reader->List().value().size(), 10000u);
  for (int i = 0; i < 10000; i += 97) {
    EXPECT_EQ(reader->Read(absl::StrCat("layer/", i, "/kernel")).value().data<float>()[1],
              static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace weft::storage
