// SPDX-License-Identifier: Apache-2.0
// Any bytes as messages of EagerService, and such bytes in the middle of good ones: what a program
// registers and then runs.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <google/protobuf/stubs/logging.h>

#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/waits.h"
#include "proto/tensorflow/eager.pb.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/eager/component_functions.h"
#include "weft/graph/device_name.h"
#include "weft/ops/catalogue.h"
#include "weft/worker/worker.h"

namespace {

namespace proto = tensorflow::eager;

struct Task {
  Task() {
    devices.push_back(weft::MakeCpuDevice(name, 0, &pool));
    options = {.task = name,
               .catalogue = &weft::StandardCatalogue(),
               .devices = {devices[0].get()},
               .pool = &pool,
               .files = &files,
               .waits = &waits,
               .clock = &clock};
    worker = std::make_unique<weft::worker::Worker>(options, nullptr);
  }
  const weft::DeviceName name{.job = "ps", .replica = 0, .task = 0};
  weft::RealClock clock;
  weft::RealFileSystem files;
  weft::WaitRegistry waits{&clock};
  weft::ThreadPool pool{"fuzz", 1};
  std::vector<std::unique_ptr<weft::Device>> devices;
  weft::worker::WorkerOptions options;
  std::unique_ptr<weft::worker::Worker> worker;
};

// f(x) = x + x
std::string GoodFunction() {
  proto::RegisterFunctionOp message;
  tensorflow::FunctionDef* const function = message.mutable_function_def();
  function->mutable_signature()->set_name("f");
  auto* const x = function->mutable_signature()->add_input_arg();
  x->set_name("x");
  x->set_type(tensorflow::DT_FLOAT);
  auto* const y = function->mutable_signature()->add_output_arg();
  y->set_name("y");
  y->set_type(tensorflow::DT_FLOAT);
  tensorflow::NodeDef* const node = function->add_node_def();
  node->set_name("sum");
  node->set_op("AddV2");
  node->add_input("x");
  node->add_input("x");
  (*node->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  (*function->mutable_ret())["y"] = "sum:z:0";
  return message.SerializeAsString();
}

void Try(Task& task, absl::string_view bytes) {
  proto::RegisterFunctionOp message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  weft::eager::ComponentFunctions functions(task.worker.get(), nullptr, "fuzz");
  if (!functions.Add(message).ok()) return;
  // Ops that wait for others, or for ever, are no affair of the messages.
  for (const auto& node : message.function_def().node_def()) {
    if (node.op() != "AddV2") return;
  }
  absl::Notification ended;
  functions.Run({.function = message.function_def().signature().name(),
                 .device = task.devices[0]->name(),
                 .step = 1,
                 .arguments = {weft::Tensor::Scalar<float>(1)},
                 .cancellation = std::make_shared<weft::Cancellation>()},
                [&](const weft::StatusOr<std::vector<weft::Tensor>>&) { ended.Notify(); });
  ended.WaitForNotification();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const task = [] {
    google::protobuf::SetLogHandler(nullptr);
    return new Task();
  }();
  static const auto* const good = new std::string(GoodFunction());
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Try(*task, text);
  if (text.empty()) return 0;
  const size_t at = static_cast<size_t>(data[0]) % (good->size() + 1);
  const absl::string_view rest = text.substr(1);
  Try(*task, good->substr(0, at) + std::string(rest) + good->substr(at));
  std::string replaced = *good;
  replaced.replace(at, std::min(rest.size(), good->size() - at), std::string(rest));
  Try(*task, replaced);
  return 0;
}
