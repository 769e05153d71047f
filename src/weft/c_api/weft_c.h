/* SPDX-License-Identifier: Apache-2.0 */
/* weft for programs that are not C++: tensors, sessions, models, datasets and a model server in
 * this process. Link with -lweft_c.
 *
 * Functions that may fail give a weft_error, or NULL for success; who gets one frees it. What a
 * function makes it puts into its last argument, and who called frees it. Names are UTF-8 that ends
 * with a zero byte. Handles may be used on any thread; those of weft_dataset, weft_error and
 * weft_tensor by one at a time. A NULL handle or name is an error, but for the functions that free,
 * which take it. Symbols carry the version WEFT_C_0.1: a later library of the same major version
 * keeps them. */
#ifndef WEFT_C_H
#define WEFT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

/* "0.1.0" */
WEFT_API const char* weft_version(void);

/* ---- Errors ---- */

typedef struct weft_error weft_error;
/* gRPC's and TensorFlow's numbers. */
enum {
  WEFT_CANCELLED = 1,
  WEFT_UNKNOWN = 2,
  WEFT_INVALID_ARGUMENT = 3,
  WEFT_DEADLINE_EXCEEDED = 4,
  WEFT_NOT_FOUND = 5,
  WEFT_ALREADY_EXISTS = 6,
  WEFT_RESOURCE_EXHAUSTED = 8,
  WEFT_FAILED_PRECONDITION = 9,
  WEFT_ABORTED = 10,
  WEFT_OUT_OF_RANGE = 11,
  WEFT_UNIMPLEMENTED = 12,
  WEFT_INTERNAL = 13,
  WEFT_UNAVAILABLE = 14,
  WEFT_DATA_LOSS = 15
};
WEFT_API int weft_error_code(const weft_error* error); /* 0 for NULL */
WEFT_API const char* weft_error_message(
    const weft_error* error); /* "" for NULL; as long as the error */
WEFT_API void weft_error_free(weft_error* error);

/* ---- Tensors ---- */

typedef struct weft_tensor weft_tensor;
/* TensorFlow's DataType. */
enum {
  WEFT_FLOAT = 1,
  WEFT_DOUBLE = 2,
  WEFT_INT32 = 3,
  WEFT_UINT8 = 4,
  WEFT_INT16 = 5,
  WEFT_INT8 = 6,
  WEFT_STRING = 7,
  WEFT_INT64 = 9,
  WEFT_BOOL = 10
};
/* A copy of `bytes` bytes at `data`, the elements in row-major order. Not for strings. `dims` are
 * `rank` sizes. */
WEFT_API weft_error* weft_tensor_new(int dtype, const int64_t* dims, int rank, const void* data,
                                     size_t bytes, weft_tensor** out);
/* A copy of as many strings as the shape has elements; `sizes` NULL: they end with a zero byte. */
WEFT_API weft_error* weft_tensor_strings(const int64_t* dims, int rank, const char* const* strings,
                                         const size_t* sizes, weft_tensor** out);
WEFT_API void weft_tensor_free(weft_tensor* tensor);
WEFT_API int weft_tensor_dtype(const weft_tensor* tensor);
WEFT_API int weft_tensor_rank(const weft_tensor* tensor);
WEFT_API int64_t weft_tensor_dim(const weft_tensor* tensor,
                                 int axis); /* -1 where there is no such axis */
WEFT_API int64_t weft_tensor_elements(const weft_tensor* tensor);
/* The elements, as long as the tensor; NULL for strings. */
WEFT_API const void* weft_tensor_data(const weft_tensor* tensor);
WEFT_API size_t weft_tensor_bytes(const weft_tensor* tensor); /* 0 for strings */
/* String `index`, as long as the tensor; NULL where there is none. */
WEFT_API const char* weft_tensor_string(const weft_tensor* tensor, int64_t index, size_t* size);

/* ---- Sessions: a graph, and steps of it ---- */

typedef struct weft_session weft_session;
/* `target` "" runs in this process, "grpc://host:port" at that task of a cluster. `graph` is a
 * serialized GraphDef. */
WEFT_API weft_error* weft_session_open(const char* target, const void* graph, size_t graph_bytes,
                                       weft_session** out);
/* Adds the nodes of another GraphDef. */
WEFT_API weft_error* weft_session_extend(weft_session* session, const void* graph,
                                         size_t graph_bytes);
/* One step: `feeds` replace the tensors named by `feed_names` ("x:0"); `fetches` gets those of
 * `fetch_names`, in that order, or NULLs after an error; the nodes of `target_names` run as well.
 */
WEFT_API weft_error* weft_session_run(weft_session* session, const char* const* feed_names,
                                      const weft_tensor* const* feeds, int num_feeds,
                                      const char* const* fetch_names, weft_tensor** fetches,
                                      int num_fetches, const char* const* target_names,
                                      int num_targets);
/* Cancels running steps; later ones fail. */
WEFT_API weft_error* weft_session_close(weft_session* session);
WEFT_API void weft_session_free(weft_session* session);

/* ---- Models: SavedModels that answer ---- */

typedef struct weft_model weft_model;
/* `tags` with commas; NULL: "serve". */
WEFT_API weft_error* weft_model_load(const char* folder, const char* tags, weft_model** out);
WEFT_API void weft_model_free(weft_model* model);
/* Names in alphabetical order, as long as the model; NULL behind the last, or where there is no
 * such signature. */
WEFT_API const char* weft_model_signature(const weft_model* model, int index);
WEFT_API const char* weft_model_input(const weft_model* model, const char* signature, int index);
WEFT_API const char* weft_model_output(const weft_model* model, const char* signature, int index);
/* Asks `signature` (NULL: "serving_default"): `outputs` gets those of `output_names`, or NULLs
 * after an error. */
WEFT_API weft_error* weft_model_predict(const weft_model* model, const char* signature,
                                        const char* const* input_names,
                                        const weft_tensor* const* inputs, int num_inputs,
                                        const char* const* output_names, weft_tensor** outputs,
                                        int num_outputs);

/* ---- Datasets: records of files, one after the other ---- */

typedef struct weft_dataset weft_dataset;
/* The records of TFRecord files, or the lines of text files; `compression` "", "GZIP" or "ZLIB". */
WEFT_API weft_error* weft_dataset_records(const char* const* paths, int num_paths,
                                          const char* compression, weft_dataset** out);
WEFT_API weft_error* weft_dataset_lines(const char* const* paths, int num_paths,
                                        const char* compression, weft_dataset** out);
/* Each changes what follows; FAILED_PRECONDITION once elements were taken. */
WEFT_API weft_error* weft_dataset_shard(weft_dataset* dataset, int64_t num_shards, int64_t index);
WEFT_API weft_error* weft_dataset_shuffle(weft_dataset* dataset, int64_t buffer, int64_t seed);
WEFT_API weft_error* weft_dataset_repeat(weft_dataset* dataset,
                                         int64_t count); /* -1: without end */
WEFT_API weft_error* weft_dataset_batch(weft_dataset* dataset, int64_t size, int drop_remainder);
WEFT_API weft_error* weft_dataset_prefetch(weft_dataset* dataset, int64_t buffer);
/* The next element, of strings; OUT_OF_RANGE behind the last. */
WEFT_API weft_error* weft_dataset_next(weft_dataset* dataset, weft_tensor** out);
WEFT_API void weft_dataset_free(weft_dataset* dataset);

/* ---- A model server in this process: TensorFlow Serving's gRPC and REST, on loopback ---- */

typedef struct weft_server weft_server;
/* Serves the newest version in `base_path`, and those that come, under `model`. Ports: 0 takes any,
 * -1 is none. */
WEFT_API weft_error* weft_server_start(const char* model, const char* base_path, int grpc_port,
                                       int rest_port, weft_server** out);
WEFT_API int weft_server_grpc_port(const weft_server* server);
WEFT_API int weft_server_rest_port(const weft_server* server);
/* Gives running requests `grace_seconds`, and ends. */
WEFT_API void weft_server_free(weft_server* server, double grace_seconds);

#ifdef __cplusplus
}
#endif
#endif
