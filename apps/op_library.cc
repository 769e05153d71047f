// SPDX-License-Identifier: Apache-2.0
// `weft op-library`: what is in a library of ops, and the code that calls them.
#include "weft/kernel/op_library.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

#include "apps/command.h"
#include "base/files.h"
#include "weft/api/generator.h"
#include "weft/api/python_module.h"
#include "weft/api/signature_text.h"
#include "weft/ops/catalogue.h"

namespace weft::apps {
namespace {

struct OpLibraryFlags {
  std::string library;
  std::string cpp_header;
  std::string python;
};

// "Clamp01(x: T) -> (y: T)  T: {float, double}"
std::string Signature(const OpSchema& op) {
  const auto args = [](const std::vector<ArgSchema>& list) {
    return absl::StrJoin(list, ", ",
                         [](std::string* out, const ArgSchema& arg) { *out += api::ArgText(arg); });
  };
  std::string text = absl::StrCat(op.name, "(", args(op.inputs), ") -> (", args(op.outputs), ")");
  for (const AttrSchema& attr : op.attrs) absl::StrAppend(&text, "  ", api::AttrText(attr));
  return text;
}

Status Write(const std::string& path, const std::string& text) {
  RealFileSystem files;
  return WriteFile(files, path, text);
}

Status Describe(const OpLibraryFlags& flags) {
  Catalogue catalogue;
  RegisterOps(catalogue);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> ops,
                        LoadOpLibrary(flags.library, &catalogue));
  const std::string file = flags.library.substr(flags.library.rfind('/') + 1);
  if (!flags.cpp_header.empty()) {
    WEFT_RETURN_IF_ERROR(Write(flags.cpp_header, api::GenerateHeader(catalogue, ops, file)));
  }
  if (!flags.python.empty()) {
    WEFT_RETURN_IF_ERROR(Write(flags.python, api::GeneratePythonModule(catalogue, ops, file)));
  }
  if (!flags.cpp_header.empty() || !flags.python.empty()) return absl::OkStatus();
  for (const std::string& name : ops) {
    std::printf("%s\n", Signature(catalogue.ops().Find(name)->schema).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddOpLibrary(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand(
      "op-library", "Show the ops of a library, or write the code that puts them into graphs");
  auto flags =
      std::make_shared<OpLibraryFlags>();  // shared with the action, which outlives this call
  command->add_option("library", flags->library, "The shared library")->required();
  command->add_option("--cpp_header", flags->cpp_header, "Write constructors for C++ to this file");
  command->add_option("--python", flags->python,
                      "Write a module for TensorFlow's client to this file");
  SetAction(command, action, [flags] { return Describe(*flags); });
}

}  // namespace weft::apps
