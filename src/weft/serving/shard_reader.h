// SPDX-License-Identifier: Apache-2.0
// The records of a file of inputs, and what a signature takes of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/byte_stream.h"
#include "weft/storage/tfrecord.h"
#include "weft/tensor/tensor.h"
#include "weft/train/meta_graph.h"

namespace weft::serving {

// Lines of JSON ("x.jsonl"), or tf.Examples ("x.tfrecord", "x.tfrecords"); either compressed with
// ".gz" behind. Not thread-safe.
class ShardReader {
 public:
  static constexpr size_t kMostLineBytes = size_t{64} << 20;

  // InvalidArgument for another kind of name.
  static StatusOr<std::unique_ptr<ShardReader>> Open(FileSystem& files, const std::string& path);

  bool holds_examples() const { return records_ != nullptr; }
  // Up to `count` records; fewer at the end only. Empty lines are none. DataLoss or
  // ResourceExhausted names the file.
  Status Read(size_t count, std::vector<std::string>* records);

 private:
  explicit ShardReader(std::string path) : path_(std::move(path)) {}
  // False at the end of the file.
  StatusOr<bool> ReadLine(std::string* line);

  const std::string path_;
  std::unique_ptr<storage::RecordReader> records_;
  std::unique_ptr<storage::ByteSource> source_;  // of lines
  std::string buffer_;
  size_t at_ = 0;
  bool ended_ = false;
};

// The inputs of one call on `records`: lines as "instances" of the REST interface; examples as they
// are where the signature takes one vector of strings, else the features of its inputs' names.
// InvalidArgument names the record, from 0 on, and the input.
StatusOr<std::map<std::string, Tensor>> InputsOfRecords(const std::vector<std::string>& records,
                                                        bool examples,
                                                        const train::Signature& signature);

}  // namespace weft::serving
