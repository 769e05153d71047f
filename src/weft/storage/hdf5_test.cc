// SPDX-License-Identifier: Apache-2.0
// h5py reads what is written here and writes what is read in tests/estimator.
#include "weft/storage/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Hdf5Group> WrittenAndRead(const Hdf5Group& root) {
  const StatusOr<std::string> bytes = WriteHdf5(root);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  StatusOr<std::unique_ptr<Hdf5Group>> read = ReadHdf5(*bytes);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : std::make_unique<Hdf5Group>();
}

TEST(Hdf5Test, GroupsTensorsAndTextsComeBack) {
  Hdf5Group root;
  root.attributes["backend"] = "tensorflow";
  root.attributes["empty"] = "";
  root.attributes["names"] = std::vector<std::string>{"dense", "", "dense_1"};
  root.attributes["config"] = std::string(200000, 'x');
  root.Make("layers/dense/vars").datasets["0"] =
      Tensor::FromSpan<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  root.datasets["count"] = Tensor::Scalar<int64_t>(7);
  root.datasets["nothing"] = Tensor::FromSpan<double>({0, 4}, {});
  root.Make("empty");
  const auto read = WrittenAndRead(root);
  EXPECT_EQ(*read->FindText("backend"), "tensorflow");
  EXPECT_EQ(*read->FindText("empty"), "");
  EXPECT_EQ(read->FindText("config")->size(), 200000u);
  EXPECT_THAT(*read->FindTexts("names"), ElementsAre("dense", "", "dense_1"));
  const Tensor* tensor = read->FindDataset("layers/dense/vars/0");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
  EXPECT_THAT(tensor->span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(read->FindDataset("count")->scalar<int64_t>(), 7);
  EXPECT_EQ(read->FindDataset("nothing")->shape(), (Shape{0, 4}));
  EXPECT_NE(read->Find("empty"), nullptr);
  EXPECT_EQ(read->Find("layers/none"), nullptr);
}

TEST(Hdf5Test, GroupsMayHaveManyMembers) {
  Hdf5Group root;
  for (int i = 0; i < 1000; ++i) {
    root.datasets[absl::StrCat("d", i)] = Tensor::Scalar<float>(static_cast<float>(i));
  }
  const auto read = WrittenAndRead(root);
  ASSERT_EQ(read->datasets.size(), 1000u);
  EXPECT_EQ(read->datasets["d937"].scalar<float>(), 937);
}

TEST(Hdf5Test, ListsInPartsAreOneList) {
  Hdf5Group group;
  group.attributes["weight_names0"] = std::vector<std::string>{"a", "b"};
  group.attributes["weight_names1"] = std::vector<std::string>{"c"};
  EXPECT_THAT(*group.FindTexts("weight_names"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(group.FindTexts("others"), nullptr);
}

TEST(Hdf5Test, WhatHasNoFormIsNamed) {
  Hdf5Group root;
  root.datasets["words"] = Tensor::Scalar("text");
  EXPECT_THAT(std::string(WriteHdf5(root).status().message()),
              HasSubstr("Dataset 'words': HDF5 files hold no string"));
  EXPECT_THAT(std::string(ReadHdf5("not HDF5").status().message()),
              HasSubstr("no bytes of an HDF5"));
}

TEST(Hdf5Test, EveryCutAndEveryFlippedByteIsAnErrorOrReads) {
  Hdf5Group root;
  root.attributes["names"] = std::vector<std::string>{"one", "two"};
  root.Make("a").datasets["b"] = Tensor::Vector<float>({1, 2, 3});
  const std::string bytes = *WriteHdf5(root);
  for (size_t cut = 0; cut < bytes.size(); cut += 37) {
    ReadHdf5(bytes.substr(0, cut)).status().IgnoreError();
  }
  for (size_t at = 0; at < bytes.size(); at += 3) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = value;
      ReadHdf5(damaged).status().IgnoreError();
    }
  }
  EXPECT_FALSE(ReadHdf5(bytes.substr(0, bytes.size() / 4)).ok());
}

}  // namespace
}  // namespace weft::storage
