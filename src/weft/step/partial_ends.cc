// SPDX-License-Identifier: Apache-2.0
#include "weft/step/partial_ends.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft::step {
namespace {

// What stands in the place of a feed or of a fetch.
NodeDef EndOf(const Node& node, const std::string& client_device, std::string edge) {
  const bool is_feed = node.num_outputs() > 0;
  NodeDef end{.name = absl::StrCat(node.name(), "_partial"), .op = is_feed ? "_Recv" : "_Send"};
  end.attrs[is_feed ? "tensor_type" : "T"] =
      is_feed ? node.output_type(0).dtype : node.input_type(0).dtype;
  end.attrs["tensor_name"] = std::move(edge);
  end.attrs["send_device"] = client_device;
  end.attrs["recv_device"] = client_device;
  end.attrs["send_device_incarnation"] = int64_t{0};
  return end;
}

RendezvousKey KeyOf(const std::string& client_device, std::string edge) {
  RendezvousKey key;
  key.send_device = client_device;
  key.receive_device = client_device;
  key.edge = std::move(edge);
  return key;
}

std::string FeedEdge(const std::string& name) { return absl::StrCat("feed of ", name); }
std::string FetchEdge(const std::string& name) { return absl::StrCat("fetch of ", name); }

}  // namespace

RendezvousKey PartialFeedKey(const std::string& client_device, const std::string& name) {
  return KeyOf(client_device, FeedEdge(name));
}

RendezvousKey PartialFetchKey(const std::string& client_device, const std::string& name) {
  return KeyOf(client_device, FetchEdge(name));
}

Status OpenCallEnds(const compile::Signature& signature, const std::string& client_device,
                    Graph* step) {
  for (Node* node : step->nodes()) {
    if (!node->IsCallEnd()) continue;
    WEFT_ASSIGN_OR_RETURN(const int64_t index, node->Attr<int64_t>("index"));
    const auto i = static_cast<size_t>(index);
    if (node->num_outputs() > 0) {
      WEFT_ASSIGN_OR_RETURN(
          Node * receive,
          step->AddNode(EndOf(*node, client_device, FeedEdge(signature.feeds[i])), {}));
      receive->set_assigned_device(client_device);
      const std::vector<Consumer> readers = node->consumers();
      for (const Consumer& reader : readers) {
        if (reader.input == kControlPort) step->AddControlEdge(receive, reader.node);
      }
      step->RedirectConsumers({node, 0}, {receive, 0});
    } else {
      WEFT_ASSIGN_OR_RETURN(
          Node * send, step->AddNode(EndOf(*node, client_device, FetchEdge(signature.fetches[i])),
                                     {node->input(0)}));
      send->set_assigned_device(client_device);
    }
    step->RemoveNode(node);
  }
  return absl::OkStatus();
}

}  // namespace weft::step
