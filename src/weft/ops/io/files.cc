// SPDX-License-Identifier: Apache-2.0
// Whole files, read and written through the session's file system, which keeps them under its root.
#include "base/files.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fnmatch.h>

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::files {
namespace {

StatusOr<FileSystem*> FilesOf(const KernelContext& c) {
  if (c.environment().files != nullptr) return c.environment().files;
  return FailedPrecondition("This session has no file system");
}

StatusOr<std::string> StringScalar(const Tensor& tensor, const char* name) {
  if (tensor.shape().IsScalar()) return tensor.scalar<std::string>();
  return InvalidArgument(name, " must be a scalar, but had shape: ", tensor.shape().ToString());
}

class ReadFileKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string name,
                          StringScalar(c.input(0), "Input filename tensor"));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    WEFT_ASSIGN_OR_RETURN(std::string contents, weft::ReadFile(*files, name));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(contents);
    return absl::OkStatus();
  }
};

class WriteFileKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string name,
                          StringScalar(c.input(0), "Input filename tensor"));
    WEFT_ASSIGN_OR_RETURN(const std::string contents, StringScalar(c.input(1), "Contents tensor"));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    const size_t slash = name.rfind('/');
    if (slash != std::string::npos && slash > 0) {
      WEFT_RETURN_IF_ERROR(files->MakeDirectories(name.substr(0, slash)));
    }
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files->OpenWrite(name, WriteMode::kTruncate));
    WEFT_RETURN_IF_ERROR(file->Append(contents));
    return file->Close();
  }
};

// What `pattern` matches: '*', '?' and '[...]' stand for characters other than '/'.
class Matcher {
 public:
  explicit Matcher(FileSystem& files) : files_(files) {}

  Status Match(std::string pattern) {
    while (pattern.size() > 1 && pattern.back() == '/') pattern.pop_back();
    if (IsPlain(pattern)) return Enter(pattern, "");
    // From the last folder before the first wildcard on: those above it may be out of reach.
    const size_t slash = pattern.rfind('/', pattern.find_first_of(kWildcards));
    const size_t start = slash == std::string::npos ? 0 : slash + 1;
    return Descend(pattern.substr(0, start), pattern.substr(start));
  }
  std::vector<std::string>& found() { return found_; }

 private:
  static constexpr char kWildcards[] = "*?[\\";
  static bool IsPlain(const std::string& text) {
    return text.find_first_of(kWildcards) == std::string::npos;
  }

  Status Descend(const std::string& folder, const std::string& rest) {
    const size_t slash = rest.find('/');
    const std::string first = rest.substr(0, slash);
    const std::string after = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (first.empty()) return after.empty() ? absl::OkStatus() : Descend(folder, after);
    if (IsPlain(first)) return Enter(folder + first, after);
    StatusOr<std::vector<std::string>> names = files_.List(folder.empty() ? "." : folder);
    if (absl::IsNotFound(names.status())) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      if (fnmatch(first.c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
      const Status entered = Enter(folder + name, after);
      // Nobody asked for this one by its name: a link that leads out of the root, or a folder that
      // is closed to us, matches nothing.
      if (absl::IsPermissionDenied(entered)) continue;
      WEFT_RETURN_IF_ERROR(entered);
    }
    return absl::OkStatus();
  }

  Status Enter(const std::string& path, const std::string& rest) {
    StatusOr<FileStat> stat = files_.Stat(path);
    if (absl::IsNotFound(stat.status())) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(stat.status());
    if (rest.empty()) {
      found_.push_back(path);
      return absl::OkStatus();
    }
    return stat->is_directory ? Descend(path + "/", rest) : absl::OkStatus();
  }

  FileSystem& files_;
  std::vector<std::string> found_;
};

class MatchingFilesKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& patterns = c.input(0);
    if (patterns.rank() > 1) {
      return InvalidArgument("Input patterns tensor must be scalar or vector, but had shape: ",
                             patterns.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    Matcher matcher(*files);
    for (const std::string& pattern : patterns.span<std::string>()) {
      WEFT_RETURN_IF_ERROR(matcher.Match(pattern));
    }
    std::vector<std::string>& found = matcher.found();
    std::sort(found.begin(), found.end());
    WEFT_ASSIGN_OR_RETURN(Tensor * output,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(found.size())}));
    std::move(found.begin(), found.end(), output->data<std::string>());
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ReadFile")
                    .Doc("All bytes of a file.\nNotFound if there is none.")
                    .Input("filename: string")
                    .Output("contents: string")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ReadFileKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("WriteFile")
                    .Doc("Makes or replaces a file, and its folder where there is none.")
                    .Input("filename: string")
                    .Input("contents: string")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<WriteFileKernel>(), KernelCost::kBlocking));
  catalogue.Add(
      OpSpec("MatchingFiles")
          .Doc("Names of files and folders that match one of the patterns, sorted: '*', '?' "
               "and '[...]' stand for characters other than '/'.")
          .Input("pattern: string")
          .Output("filenames: string")
          .Shape([](ShapeContext& c) {
            c.set_output(0, PartialShape::UnknownOfRank(1));
            return absl::OkStatus();
          })
          .NoGradient()
          .Kernel(MakeKernel<MatchingFilesKernel>(), KernelCost::kBlocking));
}

}  // namespace weft::ops::io::files
