// SPDX-License-Identifier: Apache-2.0
// Regular expressions, in RE2's language.
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "re2/re2.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::io::regex {
namespace {

StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled =
      std::make_shared<const RE2>(pattern, options);  // shared by calls while it is replaced
  if (compiled->ok()) return compiled;
  return InvalidArgument("Invalid pattern: ", pattern, ", error: ", compiled->error());
}

// The expression of the last call, made anew when the pattern is another. Thread-safe.
class LastPattern {
 public:
  StatusOr<std::shared_ptr<const RE2>> Get(const Tensor& pattern, const char* name) {
    if (!pattern.shape().IsScalar()) {
      return InvalidArgument(name, " must be scalar, but received ", pattern.shape().ToString());
    }
    const std::string& text = pattern.scalar<std::string>();
    absl::MutexLock lock(&mutex_);
    if (last_ == nullptr || last_->pattern() != text) {
      WEFT_ASSIGN_OR_RETURN(last_, Compile(text));
    }
    return last_;
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<const RE2> last_ ABSL_GUARDED_BY(mutex_);
};

Status MatchAll(KernelContext& c, const RE2& expression) {
  const Tensor& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    output->data<bool>()[i] = RE2::FullMatch(input.data<std::string>()[i], expression);
  }
  return absl::OkStatus();
}

Status ReplaceAll(KernelContext& c, const RE2& expression, const std::string& rewrite, bool all) {
  const Tensor& input = c.input(0);
  std::string error;
  // A rewrite that names a group which is not there changes nothing, as in TensorFlow.
  if (!expression.CheckRewriteString(rewrite, &error)) {
    c.SetOutput(0, input);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    std::string& text = output->data<std::string>()[i];
    text = input.data<std::string>()[i];
    if (all) {
      RE2::GlobalReplace(&text, expression, rewrite);
    } else {
      RE2::Replace(&text, expression, rewrite);
    }
  }
  return absl::OkStatus();
}

class FullMatchKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(auto expression, pattern_.Get(c.input(1), "Pattern"));
    return MatchAll(c, *expression);
  }

 private:
  LastPattern pattern_;
};

class StaticFullMatchKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string pattern, c.Attr<std::string>("pattern"));
    WEFT_ASSIGN_OR_RETURN(auto expression, Compile(pattern));
    return std::make_unique<StaticFullMatchKernel>(std::move(expression));
  }
  explicit StaticFullMatchKernel(std::shared_ptr<const RE2> expression)
      : expression_(std::move(expression)) {}
  Status Compute(KernelContext& c) override { return MatchAll(c, *expression_); }

 private:
  const std::shared_ptr<const RE2> expression_;
};

class ReplaceKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<ReplaceKernel>(c.AttrOr("replace_global", true));
  }
  explicit ReplaceKernel(bool all) : all_(all) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(auto expression, pattern_.Get(c.input(1), "Pattern"));
    if (!c.input(2).shape().IsScalar()) {
      return InvalidArgument("Rewrite must be scalar, but received ",
                             c.input(2).shape().ToString());
    }
    return ReplaceAll(c, *expression, c.input(2).scalar<std::string>(), all_);
  }

 private:
  LastPattern pattern_;
  const bool all_;
};

class StaticReplaceKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string pattern, c.Attr<std::string>("pattern"));
    WEFT_ASSIGN_OR_RETURN(std::string rewrite, c.Attr<std::string>("rewrite"));
    WEFT_ASSIGN_OR_RETURN(auto expression, Compile(pattern));
    return std::make_unique<StaticReplaceKernel>(std::move(expression), std::move(rewrite),
                                                 c.AttrOr("replace_global", true));
  }
  StaticReplaceKernel(std::shared_ptr<const RE2> expression, std::string rewrite, bool all)
      : expression_(std::move(expression)), rewrite_(std::move(rewrite)), all_(all) {}
  Status Compute(KernelContext& c) override { return ReplaceAll(c, *expression_, rewrite_, all_); }

 private:
  const std::shared_ptr<const RE2> expression_;
  const std::string rewrite_;
  const bool all_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RegexFullMatch")
                    .Doc("Whether the pattern matches all of each string.\nInvalidArgument for a "
                         "pattern that RE2 does not know.")
                    .Input("input: string")
                    .Input("pattern: string")
                    .Output("output: bool")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<FullMatchKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("StaticRegexFullMatch")
                    .Doc("Whether the pattern matches all of each string.\nInvalidArgument for a "
                         "pattern that RE2 does not know.")
                    .Input("input: string")
                    .Output("output: bool")
                    .Attr("pattern: string")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<StaticFullMatchKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("RegexReplace")
          .Doc("Replaces the first or every match; \\1 in the rewrite is the first group.")
          .Input("input: string")
          .Input("pattern: string")
          .Input("rewrite: string")
          .Output("output: string")
          .Attr("replace_global: bool = true")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<ReplaceKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("StaticRegexReplace")
          .Doc("Replaces the first or every match; \\1 in the rewrite is the first group.")
          .Input("input: string")
          .Output("output: string")
          .Attr("pattern: string")
          .Attr("rewrite: string")
          .Attr("replace_global: bool = true")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<StaticReplaceKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::regex
