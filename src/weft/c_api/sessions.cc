// SPDX-License-Identifier: Apache-2.0
#include "weft/c_api/handles.h"
#include "weft/client/session.h"
#include "weft/graph/graph_proto.h"

struct weft_session {
  std::unique_ptr<weft::session::Session> session;
};

using weft::Status;
using weft::c_api::Answer;
using weft::c_api::CheckList;
using weft::c_api::NotNull;

namespace weft::c_api {
namespace {

Status Extend(weft_session* session, const void* graph, size_t bytes) {
  if (bytes > 0) WEFT_RETURN_IF_ERROR(NotNull(graph, "bytes of a graph"));
  WEFT_ASSIGN_OR_RETURN(const GraphDef def,
                        ParseGraphDef(absl::string_view(static_cast<const char*>(graph), bytes)));
  return session->session->Extend(def);
}

}  // namespace
}  // namespace weft::c_api

weft_error* weft_session_open(const char* target, const void* graph, size_t graph_bytes,
                              weft_session** out) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(target, "names"));
    WEFT_RETURN_IF_ERROR(NotNull(out, "results"));
    auto session = std::make_unique<weft_session>();
    WEFT_ASSIGN_OR_RETURN(session->session, weft::client::NewSession({.target = target}));
    if (graph_bytes > 0)
      WEFT_RETURN_IF_ERROR(weft::c_api::Extend(session.get(), graph, graph_bytes));
    *out = session.release();
    return absl::OkStatus();
  });
}

weft_error* weft_session_extend(weft_session* session, const void* graph, size_t graph_bytes) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(session, "handles"));
    return weft::c_api::Extend(session, graph, graph_bytes);
  });
}

weft_error* weft_session_run(weft_session* session, const char* const* feed_names,
                             const weft_tensor* const* feeds, int num_feeds,
                             const char* const* fetch_names, weft_tensor** fetches, int num_fetches,
                             const char* const* target_names, int num_targets) {
  return Answer([&]() -> Status {
    if (fetches != nullptr) std::fill_n(fetches, std::max(num_fetches, 0), nullptr);
    WEFT_RETURN_IF_ERROR(NotNull(session, "handles"));
    WEFT_RETURN_IF_ERROR(CheckList(feed_names, num_feeds, "names"));
    WEFT_RETURN_IF_ERROR(CheckList(feeds, num_feeds, "feeds"));
    WEFT_RETURN_IF_ERROR(CheckList(fetch_names, num_fetches, "names"));
    WEFT_RETURN_IF_ERROR(CheckList(target_names, num_targets, "names"));
    if (num_fetches > 0) WEFT_RETURN_IF_ERROR(NotNull(fetches, "results"));
    std::vector<weft::session::Feed> fed;
    for (int i = 0; i < num_feeds; ++i) fed.push_back({feed_names[i], feeds[i]->tensor});
    std::vector<weft::Tensor> results;
    WEFT_RETURN_IF_ERROR(session->session->Run(fed, {fetch_names, fetch_names + num_fetches},
                                               {target_names, target_names + num_targets},
                                               &results));
    std::vector<std::unique_ptr<weft_tensor>> made;
    for (const weft::Tensor& result : results) {
      weft_tensor* tensor = nullptr;
      WEFT_RETURN_IF_ERROR(weft::c_api::GiveTensor(result, &tensor));
      made.emplace_back(tensor);
    }
    for (size_t i = 0; i < made.size(); ++i) fetches[i] = made[i].release();
    return absl::OkStatus();
  });
}

weft_error* weft_session_close(weft_session* session) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(session, "handles"));
    return session->session->Close();
  });
}

void weft_session_free(weft_session* session) { delete session; }
