// SPDX-License-Identifier: Apache-2.0
// The rows that a query of an SQLite file gives.
#include <utility>

#include <sqlite3.h>

#include "weft/data/dataset_op.h"

namespace weft::data::sql {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

// A copy of the file in memory: the file system of the session reads it, wherever that is, and the
// query can change or open nothing else.
StatusOr<Database> OpenCopy(std::string bytes, const std::string& path) {
  sqlite3* opened = nullptr;
  const int rc = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened);
  if (rc != SQLITE_OK) return Internal("SQLite: ", sqlite3_errstr(rc));
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(static_cast<sqlite3_uint64>(size) + 1));
  if (copy == nullptr) return ResourceExhausted("No memory for ", path);
  std::copy(bytes.begin(), bytes.end(), copy);
  const int read =
      sqlite3_deserialize(opened, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (read != SQLITE_OK) return InvalidArgument(path, ": ", sqlite3_errmsg(opened));
  return database;
}

class Query final : public Dataset {
 public:
  Query(ElementSpec spec, std::string path, std::string query)
      : Dataset(std::move(spec)), path_(std::move(path)), query_(std::move(query)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Query>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Query> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      if (is_over_) return false;
      if (statement_ == nullptr) WEFT_RETURN_IF_ERROR(Begin());
      const int rc = sqlite3_step(statement_.get());
      if (rc == SQLITE_DONE) {
        is_over_ = true;
        statement_.reset();
        database_.reset();
        return false;
      }
      if (rc != SQLITE_ROW) return Failed();
      element->clear();
      for (size_t i = 0; i < dataset_->spec().types.size(); ++i) {
        WEFT_ASSIGN_OR_RETURN(Tensor value,
                              ValueOf(static_cast<int>(i), dataset_->spec().types[i]));
        element->push_back(std::move(value));
      }
      return true;
    }

   private:
    Status Begin() {
      WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context_->files());
      WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(*files, dataset_->path_));
      WEFT_ASSIGN_OR_RETURN(database_, OpenCopy(std::move(bytes), dataset_->path_));
      // Ends a query that computes for long when nobody waits for it any more.
      sqlite3_progress_handler(
          database_.get(), 10000,
          [](void* context) {
            return static_cast<IteratorContext*>(context)->Check().ok() ? 0 : 1;
          },
          context_.get());
      sqlite3_stmt* made = nullptr;
      const int rc = sqlite3_prepare_v2(database_.get(), dataset_->query_.data(),
                                        static_cast<int>(dataset_->query_.size()), &made, nullptr);
      statement_.reset(made);
      if (rc != SQLITE_OK || made == nullptr) return Failed();
      const int columns = sqlite3_column_count(made);
      if (columns == static_cast<int>(dataset_->spec().types.size())) return absl::OkStatus();
      statement_.reset();
      return InvalidArgument("The number of columns in query (", columns,
                             ") must match the number of elements in output_types (",
                             dataset_->spec().types.size(), ").");
    }

    Status Failed() {
      const std::string why = sqlite3_errmsg(database_.get());
      statement_.reset();
      WEFT_RETURN_IF_ERROR(context_->Check());
      // TensorFlow's code for what SQLite says of a query.
      return absl::UnknownError(absl::StrCat("SQLite: ", why, ": ", dataset_->query_));
    }

    StatusOr<Tensor> ValueOf(int column, DType dtype) {
      sqlite3_stmt* const row = statement_.get();
      if (dtype == DType::kString) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
        const int size = sqlite3_column_bytes(row, column);
        return Tensor::Scalar(bytes == nullptr ? std::string()
                                               : std::string(bytes, static_cast<size_t>(size)));
      }
      WEFT_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype, Shape()));
      using Whole = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;
      if (dtype == DType::kDouble) {
        *value.data<double>() = sqlite3_column_double(row, column);
      } else if (dtype == DType::kBool) {
        *value.data<bool>() = sqlite3_column_int(row, column) != 0;
      } else {
        VisitDType(dtype, Whole(), [&]<typename T>() {
          *value.data<T>() = static_cast<T>(sqlite3_column_int64(row, column));
        });
      }
      return value;
    }

    const Ref<const Query> dataset_;
    const ContextPtr context_;
    Database database_;
    Statement statement_;  // goes before the database
    bool is_over_ = false;
  };

  const std::string path_;
  const std::string query_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string driver, ScalarInput<std::string>(c, "driver_name"));
  WEFT_ASSIGN_OR_RETURN(std::string path, ScalarInput<std::string>(c, "data_source_name"));
  WEFT_ASSIGN_OR_RETURN(std::string query, ScalarInput<std::string>(c, "query"));
  if (driver != "sqlite") {
    return InvalidArgument("The database type, ", driver,
                           ", is not supported by SqlDataset. The set of supported databases is: "
                           "{'sqlite'}.");
  }
  constexpr size_t kMostQuery = 1 << 20;
  if (query.size() > kMostQuery) return InvalidArgument("The query is longer than ", kMostQuery);
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  for (const DType dtype : spec.types) {
    using Taken =
        TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, bool, double, std::string>;
    if (VisitDType(dtype, Taken(), []<typename T>() {})) continue;
    return InvalidArgument("Each element of `output_types` must be one of: DT_STRING, DT_INT8, ",
                           "DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE");
  }
  for (const PartialShape& shape : spec.shapes) {
    if (shape.known_rank() && shape.rank() == 0) continue;
    return InvalidArgument("Each element of `output_shapes` must be a scalar.");
  }
  return DatasetRef(MakeRef<Query>(std::move(spec), std::move(path), std::move(query)));
}

DatasetOpSpec Spec(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .inputs = {"driver_name: string", "data_source_name: string", "query: string"},
          .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
          .is_stateful = true,
          .make = Make};
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             Spec("SqlDataset",
                  "A dataset of the rows that `query` gives, a scalar for each column.\n"
                  "driver_name: \"sqlite\"; data_source_name: the file, of at most 1 GiB, which is "
                  "read whole."));
  AddDataset(catalogue, Spec("ExperimentalSqlDataset", "SqlDataset under its first name."));
}

}  // namespace weft::data::sql
