// SPDX-License-Identifier: Apache-2.0
// A local session behind a pipe, so that ops_test.py can compare ops without a server.
//
//   local_session inspect --ops     prints the catalogue, as `weft inspect --ops` does
//   local_session                   reads frames from stdin, answers each on stdout
//
// A frame is a kind, a 32-bit length and bytes. 'N' starts a session with a GraphDef, 'R' runs a
// RunStepRequest; both are answered by a RunStepResponse with a status.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "proto/tensorflow/master.pb.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/device/plugin/plugin_devices.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/op_list.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/session/direct_session.h"
#include "weft/tensor/tensor_proto.h"

namespace weft {
namespace {

using session::Feed;
using session::Session;

// A server of this process with the devices of a library beside its CPU.
StatusOr<std::unique_ptr<PluginDevices>> LoadPlugin(const char* library, Catalogue* catalogue) {
  RegisterOps(*catalogue);
  WEFT_RETURN_IF_ERROR(catalogue->status());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<PluginDevices> plugin, PluginDevices::Load(library));
  WEFT_RETURN_IF_ERROR(plugin->AddKernels(catalogue));
  return plugin;
}

StatusOr<std::unique_ptr<server::Server>> StartServer(const Catalogue* catalogue,
                                                      DeviceFactory* devices) {
  server::ServerOptions options{.task = {"local", 0}, .catalogue = catalogue, .devices = devices};
  WEFT_ASSIGN_OR_RETURN(options.cluster,
                        cluster::ClusterSpec::FromJson(R"({"local":["127.0.0.1:0"]})"));
  return server::Server::Start(options);
}

// A session in which every node asks for the library's device: those without a kernel there go to
// the CPU, and copies between.
StatusOr<std::unique_ptr<Session>> NewSessionOnPlugin(const char* library, GraphDef* graph) {
  static auto* const catalogue = new Catalogue();
  static const auto* const plugin =
      new StatusOr<std::unique_ptr<PluginDevices>>(LoadPlugin(library, catalogue));
  WEFT_RETURN_IF_ERROR(plugin->status());
  static auto* const devices = new JoinedDevices({&StandardDevices(), (**plugin).get()});
  static const auto* const server =
      new StatusOr<std::unique_ptr<server::Server>>(StartServer(catalogue, devices));
  WEFT_RETURN_IF_ERROR(server->status());
  for (NodeDef& node : graph->nodes) {
    if (node.device.empty()) node.device = absl::StrCat("/device:", (**plugin)->type(), ":0");
  }
  client::SessionOptions options;
  options.target = (**server)->target();
  return client::NewSession(options);
}

Status Start(const std::string& bytes, std::unique_ptr<Session>* session) {
  WEFT_ASSIGN_OR_RETURN(GraphDef graph, ParseGraphDef(bytes));
  if (const char* const library = std::getenv("WEFT_DEVICE_PLUGIN"); library != nullptr) {
    WEFT_ASSIGN_OR_RETURN(*session, NewSessionOnPlugin(library, &graph));
    return (*session)->Extend(graph);
  }
  session::DirectOptions options;
  options.catalogue = &StandardCatalogue();
  options.devices = &StandardDevices();
  options.fold = false;
  options.fuse = false;
  WEFT_ASSIGN_OR_RETURN(*session, session::NewDirectSession(options));
  return (*session)->Extend(graph);
}

Status Step(const std::string& bytes, Session* session, tensorflow::RunStepResponse* response) {
  tensorflow::RunStepRequest request;
  if (session == nullptr || !request.ParseFromString(bytes))
    return InvalidArgument("A frame is malformed");
  std::vector<Feed> feeds;
  for (const auto& feed : request.feed()) {
    WEFT_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(feed.tensor()));
    feeds.emplace_back(feed.name(), std::move(tensor));
  }
  std::vector<Tensor> results;
  const std::vector<std::string> fetches(request.fetch().begin(), request.fetch().end());
  WEFT_RETURN_IF_ERROR(
      session->Run(feeds, fetches, {request.target().begin(), request.target().end()}, &results));
  for (size_t i = 0; i < fetches.size(); ++i) {
    auto* result = response->add_tensor();
    result->set_name(fetches[i]);
    WEFT_RETURN_IF_ERROR(TensorToProto(results[i], result->mutable_tensor()));
  }
  return absl::OkStatus();
}

int Serve() {
  std::unique_ptr<Session> session;
  for (char head[5]; std::fread(head, 1, 5, stdin) == 5;) {
    uint32_t length;
    std::memcpy(&length, head + 1, 4);
    std::string bytes(length, '\0');
    if (std::fread(bytes.data(), 1, length, stdin) != length) return 1;
    tensorflow::RunStepResponse response;
    const Status status =
        head[0] == 'N' ? Start(bytes, &session) : Step(bytes, session.get(), &response);
    if (!status.ok()) response.clear_tensor();
    response.set_status_code(static_cast<tensorflow::error::Code>(status.code()));
    response.set_status_error_message(std::string(status.message()));
    const std::string answer = response.SerializeAsString();
    length = answer.size();
    std::fwrite(&length, 4, 1, stdout);
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char**) {
  if (argc == 1) return weft::Serve();
  const weft::StatusOr<std::string> json = weft::OpListJson(weft::StandardCatalogue().ops());
  if (argc != 3 || !json.ok()) return 1;
  std::fputs(json->c_str(), stdout);
  return 0;
}
