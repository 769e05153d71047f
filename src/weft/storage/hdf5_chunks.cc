// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/hdf5_chunks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "weft/storage/deflate.h"
#include "weft/storage/hdf5_format.h"

namespace weft::storage::hdf5 {
namespace {

constexpr int kMaxTreeDepth = 32;

// Bytes of elements stand together by their place in the element: all first ones, all second
// ones...
std::string Unshuffled(const std::string& bytes, size_t element) {
  if (element <= 1) return bytes;
  std::string out(bytes.size(), '\0');
  const size_t count = bytes.size() / element;
  for (size_t place = 0; place < element; ++place) {
    for (size_t i = 0; i < count; ++i) out[i * element + place] = bytes[place * count + i];
  }
  return out;
}

class Chunks {
 public:
  Chunks(absl::string_view file, const std::vector<Filter>& filters, std::vector<int64_t> chunk,
         Tensor* out)
      : file_(file), filters_(filters), chunk_(std::move(chunk)), out_(*out) {
    chunk_bytes_ = DTypeSize(out->dtype());
    for (const int64_t size : chunk_) chunk_bytes_ *= static_cast<size_t>(size);
  }

  Status ReadTree(uint64_t at, int level) {
    if (level > kMaxTreeDepth || ++nodes_ > file_.size() / 16 + 16) {
      return DataLoss("HDF5 file: a tree of chunks has circles in it");
    }
    Cursor c(file_, at);
    WEFT_RETURN_IF_ERROR(c.Expect("TREE"));
    WEFT_ASSIGN_OR_RETURN(const uint64_t type, c.Take(1));
    if (type != 1) return c.Damaged("a tree of chunks");
    WEFT_ASSIGN_OR_RETURN(const uint64_t height, c.Take(1));
    WEFT_ASSIGN_OR_RETURN(const uint64_t entries, c.Take(2));
    WEFT_RETURN_IF_ERROR(c.Skip(16));
    for (uint64_t i = 0; i < entries; ++i) {
      WEFT_ASSIGN_OR_RETURN(const uint64_t bytes, c.Take(4));
      WEFT_ASSIGN_OR_RETURN(const uint64_t left_out, c.Take(4));
      std::vector<int64_t> begin;
      for (size_t axis = 0; axis < chunk_.size(); ++axis) {
        WEFT_ASSIGN_OR_RETURN(const uint64_t offset, c.Take(8));
        begin.push_back(static_cast<int64_t>(std::min<uint64_t>(offset, INT64_MAX / 2)));
      }
      WEFT_RETURN_IF_ERROR(c.Skip(8));
      WEFT_ASSIGN_OR_RETURN(const uint64_t child, c.Take(8));
      WEFT_RETURN_IF_ERROR(height > 0 ? ReadTree(child, level + 1)
                                      : ReadOne(child, bytes, left_out, begin));
    }
    return absl::OkStatus();
  }

 private:
  Status ReadOne(uint64_t at, uint64_t size, uint64_t left_out, const std::vector<int64_t>& begin) {
    Cursor c(file_, at);
    WEFT_ASSIGN_OR_RETURN(const absl::string_view stored, c.Bytes(size));
    std::string bytes(stored);
    for (size_t i = filters_.size(); i-- > 0;) {
      if ((left_out >> i & 1) != 0) continue;
      if (filters_[i] == Filter::kShuffle) {
        bytes = Unshuffled(bytes, DTypeSize(out_.dtype()));
      } else {
        WEFT_ASSIGN_OR_RETURN(bytes, Inflate(bytes, chunk_bytes_, DeflateForm::kZlib));
      }
    }
    if (bytes.size() < chunk_bytes_) return c.Damaged("a chunk");
    Place(bytes, begin);
    return absl::OkStatus();
  }

  // Copies rows of the chunk that lie inside the dataset.
  void Place(const std::string& bytes, const std::vector<int64_t>& begin) {
    const size_t element = DTypeSize(out_.dtype());
    const int rank = out_.rank();
    const int last = rank - 1;
    const int64_t row = std::min(chunk_[last], out_.dim(last) - begin[last]);
    if (row <= 0) return;
    const int64_t rows = static_cast<int64_t>(chunk_bytes_ / element) / chunk_[last];
    for (int64_t r = 0; r < rows; ++r) {
      int64_t rest = r, to = 0, stride = out_.dim(last);
      bool inside = true;
      for (int axis = last - 1; axis >= 0; --axis) {
        const int64_t index = begin[axis] + rest % chunk_[axis];
        rest /= chunk_[axis];
        inside = inside && index < out_.dim(axis);
        to += index * stride;
        stride *= out_.dim(axis);
      }
      if (!inside) continue;
      std::memcpy(out_.bytes() + static_cast<size_t>(to + begin[last]) * element,
                  bytes.data() + static_cast<size_t>(r * chunk_[last]) * element,
                  static_cast<size_t>(row) * element);
    }
  }

  const absl::string_view file_;
  const std::vector<Filter>& filters_;
  const std::vector<int64_t> chunk_;
  size_t chunk_bytes_ = 0;
  uint64_t nodes_ = 0;
  Tensor& out_;
};

}  // namespace

StatusOr<std::vector<Filter>> ReadFilters(Cursor& c) {
  WEFT_ASSIGN_OR_RETURN(const uint64_t version, c.Take(1));
  WEFT_ASSIGN_OR_RETURN(const uint64_t count, c.Take(1));
  if (version != 1) return c.Unread("filters", version);
  WEFT_RETURN_IF_ERROR(c.Skip(6));
  std::vector<Filter> filters;
  for (uint64_t i = 0; i < count; ++i) {
    WEFT_ASSIGN_OR_RETURN(const uint64_t id, c.Take(2));
    WEFT_ASSIGN_OR_RETURN(const uint64_t name_size, c.Take(2));
    WEFT_RETURN_IF_ERROR(c.Take(2).status());
    WEFT_ASSIGN_OR_RETURN(const uint64_t values, c.Take(2));
    WEFT_RETURN_IF_ERROR(c.Skip((name_size + 7) / 8 * 8));
    WEFT_RETURN_IF_ERROR(c.Skip((values + values % 2) * 4));
    if (id != 1 && id != 2) return Unimplemented("filter ", id, " of HDF5 files");
    filters.push_back(id == 1 ? Filter::kDeflate : Filter::kShuffle);
  }
  return filters;
}

StatusOr<Tensor> ReadChunks(absl::string_view file, Cursor& c, DType dtype, const Shape& shape,
                            const std::vector<Filter>& filters) {
  WEFT_ASSIGN_OR_RETURN(const uint64_t rank, c.Take(1));
  WEFT_ASSIGN_OR_RETURN(const uint64_t tree, c.Take(8));
  if (static_cast<int>(rank) != shape.rank() + 1 || shape.rank() == 0) {
    return c.Damaged("the rank of chunks");
  }
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const uint64_t size, c.Take(4));
    if (size == 0) return c.Damaged("the size of chunks");
    sizes.push_back(static_cast<int64_t>(size));
    WEFT_ASSIGN_OR_RETURN(elements, MultiplySizes(elements, sizes.back()));
  }
  // Deflate makes at most a thousandth of what it is given.
  const auto most = static_cast<int64_t>(std::min<uint64_t>(file.size(), uint64_t{1} << 40)) * 1100;
  const auto element = static_cast<int64_t>(DTypeSize(dtype));
  if (shape.num_elements() > most / element || elements > most / element) {
    return c.Damaged("the size of a dataset in chunks");
  }
  WEFT_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(dtype, shape));
  if (tree == kUndefined || shape.num_elements() == 0) return out;
  WEFT_RETURN_IF_ERROR(Chunks(file, filters, std::move(sizes), &out).ReadTree(tree, 0));
  return out;
}

}  // namespace weft::storage::hdf5
