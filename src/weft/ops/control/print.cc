// SPDX-License-Identifier: Apache-2.0
// Ops that tell somebody something: Print, PrintV2 and the time.
#include <atomic>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/control/summarize_kernel.h"

namespace weft::ops::control::print {
namespace {

class PrintKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string message, c.Attr<std::string>("message"));
    WEFT_ASSIGN_OR_RETURN(const int64_t first_n, c.Attr<int64_t>("first_n"));
    WEFT_ASSIGN_OR_RETURN(const int64_t summarize, c.Attr<int64_t>("summarize"));
    return std::make_unique<PrintKernel>(std::move(message), first_n, summarize);
  }
  PrintKernel(std::string message, int64_t first_n, int64_t summarize)
      : message_(std::move(message)), first_n_(first_n), summarize_(summarize) {}

  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    if (first_n_ >= 0 && printed_.fetch_add(1, std::memory_order_relaxed) >= first_n_)
      return absl::OkStatus();
    std::string line = message_;
    for (int i = 1; i < c.num_inputs(); ++i)
      absl::StrAppend(&line, "[", Summarize(c.input(i), summarize_), "]");
    line.push_back('\n');
    std::fputs(line.c_str(), stderr);
    return absl::OkStatus();
  }

 private:
  const std::string message_;
  const int64_t first_n_;
  const int64_t summarize_;
  std::atomic<int64_t> printed_{0};
};

class PrintV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string stream, c.Attr<std::string>("output_stream"));
    WEFT_ASSIGN_OR_RETURN(std::string end, c.Attr<std::string>("end"));
    for (const char* known : {"stdout", "stderr", "log(info)", "log(warning)", "log(error)"}) {
      if (stream == known)
        return std::make_unique<PrintV2Kernel>(std::move(stream), std::move(end));
    }
    if (absl::StartsWith(stream, "file://") && stream.size() > 7) {
      return std::make_unique<PrintV2Kernel>(std::move(stream), std::move(end));
    }
    return InvalidArgument(
        "Unknown output stream: ", stream,
        ", Valid streams are: stdout, stderr, log(info), log(warning), log(error), file://");
  }
  PrintV2Kernel(std::string stream, std::string end)
      : stream_(std::move(stream)), end_(std::move(end)) {}

  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) {
      return InvalidArgument("Input is expected to be scalar, but got ",
                             c.input(0).shape().ToString());
    }
    const std::string text = absl::StrCat(*c.input(0).data<std::string>(), end_);
    absl::string_view path = stream_;
    if (absl::ConsumePrefix(&path, "file://")) return Append(c, std::string(path), text);
    if (stream_ == "log(info)") {
      WEFT_LOG(INFO) << text;
    } else if (stream_ == "log(warning)") {
      WEFT_LOG(WARNING) << text;
    } else if (stream_ == "log(error)") {
      WEFT_LOG(ERROR) << text;
    } else {
      std::FILE* out = stream_ == "stdout" ? stdout : stderr;
      std::fwrite(text.data(), 1, text.size(), out);
      std::fflush(out);
    }
    return absl::OkStatus();
  }

 private:
  static Status Append(KernelContext& c, const std::string& path, const std::string& text) {
    if (c.environment().files == nullptr) return FailedPrecondition("This step has no file system");
    WEFT_ASSIGN_OR_RETURN(auto file, c.environment().files->OpenWrite(path, WriteMode::kAppend));
    WEFT_RETURN_IF_ERROR(file->Append(text));
    return file->Close();
  }

  const std::string stream_;
  const std::string end_;
};

class TimestampKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<double>() = static_cast<double>(absl::ToUnixMicros(RealClock().Now())) * 1e-6;
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Print")
                    .Doc("Returns `input` and prints `message` and `data` to stderr, the first "
                         "`first_n` times "
                         "(always if negative).")
                    .Input("input: T")
                    .Input("data: U")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("U: list(type) >= 0")
                    .Attr("message: string = ''")
                    .Attr("first_n: int = -1")
                    .Attr("summarize: int = 3")
                    .Stateful()
                    .Shape(shapes::SameAsInput)
                    .Gradient([](GradientContext& c) {
                      c.set_input(0, c.gradient());
                      return absl::OkStatus();
                    })
                    .Kernel(MakeKernel<PrintKernel>(), KernelCost::kBlocking));
  catalogue.Add(
      OpSpec("PrintV2")
          .Doc("Prints a string to stderr, stdout, the log or the end of a file (file://PATH).")
          .Input("input: string")
          .Attr("output_stream: string = 'stderr'")
          .Attr("end: string = '\n'")
          .Stateful()
          .Shape(shapes::NoOutputs)
          .NoGradient()
          .Kernel(MakeKernel<PrintV2Kernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("Timestamp")
                    .Doc("Returns the seconds since 1970, UTC.")
                    .Output("ts: double")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<TimestampKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::print
