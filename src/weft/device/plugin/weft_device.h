/* SPDX-License-Identifier: Apache-2.0
 * What a shared library gives to be a device of weft: plain C, and nothing else of weft to link.
 *
 * The library exports two functions:
 *
 *   uint32_t weft_device_version(void);            returns WEFT_DEVICE_VERSION
 *   const weft_device_api* weft_device_get(void);  the table below, which lives as long as the
 * process
 *
 * Functions that can fail return a code, 0 for success, and then put a message into `error`. Any
 * thread may call; calls for one stream come one at a time. What is asked of a stream happens in
 * the order of asking, perhaps later. A stream that failed stays failed and says so in each
 * `notify`.
 */
#ifndef WEFT_DEVICE_PLUGIN_WEFT_DEVICE_H_
#define WEFT_DEVICE_PLUGIN_WEFT_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DEVICE_VERSION 1u

/* Codes are gRPC's. */
#define WEFT_OK 0
#define WEFT_INVALID_ARGUMENT 3 /* the call's inputs or attributes are wrong */
#define WEFT_OUT_OF_MEMORY 8    /* of the device; the step fails, the device goes on */
#define WEFT_UNIMPLEMENTED 12
#define WEFT_INTERNAL 13
#define WEFT_DEVICE_LOST 14 /* the device is dead, and so is what runs on it */

typedef struct weft_error {
  char message[512]; /* ends with a zero byte */
} weft_error;

/* Types of the library's own. */
typedef struct weft_device weft_device;
typedef struct weft_stream weft_stream;
typedef struct weft_event weft_event;

typedef struct weft_device_properties {
  int32_t index;         /* the 0 of "/device:ASIC:0": another one for each device */
  uint64_t memory_bytes; /* more than 0 */
  char description[128]; /* for people: ends with a zero byte */
} weft_device_properties;

/* Element types have the numbers of TensorFlow's DataType: 1 float, 2 double, 3 int32, 9 int64, ...
 */
typedef struct weft_tensor {
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  int64_t elements;
  uint64_t bytes;
  uint64_t address;    /* where it lies in the device's memory; 0 if it lies on the host */
  const void* on_host; /* the elements of what stays on the host (shapes, axes, ...); else null */
} weft_tensor;

/* What a kernel is made for. Strings and lists live until create_kernel returns. */
typedef struct weft_op {
  const char* name; /* of the node: for messages */
  const char* op;   /* "MatMul" */
  int32_t num_inputs;
  int32_t num_outputs;
  const int32_t* input_dtypes;
  const int32_t* output_dtypes;
  const void*
      attributes; /* for the functions below, which return 0 if there is no such attribute */
  int (*get_int)(const void* attributes, const char* name, int64_t* value);
  int (*get_float)(const void* attributes, const char* name, float* value);
  int (*get_bool)(const void* attributes, const char* name, int* value);
  int (*get_dtype)(const void* attributes, const char* name, int32_t* value);
  int (*get_string)(const void* attributes, const char* name, const char** value);
  int (*get_ints)(const void* attributes, const char* name, const int64_t** values, size_t* count);
} weft_op;

/* One call of a kernel. Lives until launch returns. */
typedef struct weft_call {
  int32_t num_inputs;
  const weft_tensor* inputs; /* a variable's value stands where the op takes the variable */
  void* host;                /* for the function below */
  /* Makes output `index` of these sizes in the device's memory, over the bytes of input `reuse` if
   * nobody else needs them and they are as many (-1: never). Null if memory is short: return
   * WEFT_OUT_OF_MEMORY then. */
  const weft_tensor* (*output)(void* host, int32_t index, int32_t reuse, int32_t rank,
                               const int64_t* dims);
} weft_call;

/* A kernel holds for all types unless `types` limit attributes. */
typedef struct weft_type_limit {
  const char* attribute; /* "T" */
  const int32_t* dtypes;
  size_t count;
} weft_type_limit;

typedef struct weft_kernel_info {
  const char* op;
  const weft_type_limit* types;
  size_t num_types;
  /* Bit i: input i is a variable, by reference or by handle, and the kernel writes its value, which
   * has bytes of its own then. A variable that is only read has no bit. */
  uint64_t writes;
} weft_kernel_info;

typedef struct weft_kernel weft_kernel;

typedef struct weft_device_api {
  size_t size;      /* sizeof(weft_device_api) */
  const char* type; /* of the devices, in capitals: "ASIC" */

  int32_t (*num_devices)(void);
  int (*create)(int32_t number, weft_device** device, weft_device_properties* properties,
                weft_error* error);
  void (*destroy)(weft_device* device);

  /* Memory, at addresses that are multiples of 64 and never 0. What streams were asked before may
   * still use a block that is released; `allocate` waits for such blocks before it says that memory
   * is short. */
  int (*allocate)(weft_device* device, uint64_t bytes, uint64_t* address, weft_error* error);
  void (*release)(weft_device* device, uint64_t address);

  int (*create_stream)(weft_device* device, weft_stream** stream, weft_error* error);
  void (*destroy_stream)(weft_stream* stream);
  /* Host memory stays as it is until the copy is done. */
  int (*copy_in)(weft_stream* stream, const void* from, uint64_t to, uint64_t bytes,
                 weft_error* error);
  int (*copy_out)(weft_stream* stream, uint64_t from, void* to, uint64_t bytes, weft_error* error);
  int (*copy_across)(weft_stream* stream, uint64_t from, uint64_t to, uint64_t bytes,
                     weft_error* error);
  /* Calls `done` once, on any thread and perhaps before it returns, when all that the stream was
   * asked before has happened, or failed: `code` is not 0 then. `done` returns soon. */
  int (*notify)(weft_stream* stream, void (*done)(void* argument, int code, const char* message),
                void* argument, weft_error* error);

  int (*create_event)(weft_device* device, weft_event** event, weft_error* error);
  void (*destroy_event)(weft_event* event);
  /* The event happens when all that the stream was asked before has happened. It may be used again.
   */
  int (*record)(weft_stream* stream, weft_event* event, weft_error* error);
  /* What the stream is asked later waits for what was recorded last. */
  int (*wait)(weft_stream* stream, weft_event* event, weft_error* error);

  /* Kernels: the list, then one made for each node and called by each step. */
  size_t num_kernels;
  const weft_kernel_info* kernels;
  int (*create_kernel)(weft_device* device, size_t number, const weft_op* op, weft_kernel** kernel,
                       weft_error* error);
  void (*destroy_kernel)(weft_kernel* kernel);
  /* Checks shapes, asks for outputs, puts the work into the stream and returns. */
  int (*launch)(weft_kernel* kernel, weft_stream* stream, const weft_call* call, weft_error* error);
} weft_device_api;

uint32_t weft_device_version(void);
const weft_device_api* weft_device_get(void);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_DEVICE_PLUGIN_WEFT_DEVICE_H_ */
