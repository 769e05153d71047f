// SPDX-License-Identifier: Apache-2.0
// HDF5 files as Keras and h5py write them: groups, tensors, attributes of text.
//
// Written are files of the oldest version of the format, which every reader knows. Read are those
// of that version (superblock 0 and 1): what h5py writes unless it is told otherwise. Chunked
// datasets are read with the deflate and shuffle filters.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::storage {

// A group with all that is in it. Names hold no "/".
struct Hdf5Group {
  // A text or a list of texts. Attributes of other types are left out when a file is read.
  using Attribute = std::variant<std::string, std::vector<std::string>>;

  std::map<std::string, std::unique_ptr<Hdf5Group>> groups;
  std::map<std::string, Tensor> datasets;  // float, double, half, whole numbers
  std::map<std::string, Attribute> attributes;

  // The group at "a/b", made if need be.
  Hdf5Group& Make(absl::string_view path);
  // Null where there is none.
  const Hdf5Group* Find(absl::string_view path) const;
  const Tensor* FindDataset(absl::string_view path) const;
  const std::string* FindText(const std::string& attribute) const;
  // The list `attribute`, or its parts `attribute`0, `attribute`1, ... as Keras splits long ones;
  // null if there is neither.
  std::unique_ptr<std::vector<std::string>> FindTexts(const std::string& attribute) const;
};

// The file's bytes. InvalidArgument names a tensor of a dtype that has no form here, or an
// attribute that is too long.
StatusOr<std::string> WriteHdf5(const Hdf5Group& root);

// InvalidArgument for bytes that are no HDF5, DataLoss, saying where, for damaged ones,
// Unimplemented for versions and types that are not read.
StatusOr<std::unique_ptr<Hdf5Group>> ReadHdf5(absl::string_view bytes);

}  // namespace weft::storage
