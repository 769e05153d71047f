/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a model for y of x, and then lets others ask it: predict MODEL 10 20 */
#include <stdio.h>
#include <stdlib.h>

#include "weft_c.h"

static void check(weft_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "predict: %s (code %d)\n", weft_error_message(error), weft_error_code(error));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "predict: expected the folder of a model and numbers\n");
    return 2;
  }
  char version[4096];
  snprintf(version, sizeof(version), "%s/1", argv[1]);
  const int64_t count = argc - 2;
  float* values = malloc((size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) values[i] = strtof(argv[i + 2], NULL);

  weft_model* model;
  check(weft_model_load(version, NULL, &model));
  const char* input = weft_model_input(model, NULL, 0);
  const char* output = weft_model_output(model, NULL, 0);
  weft_tensor *x, *y;
  check(weft_tensor_new(WEFT_FLOAT, &count, 1, values, (size_t)count * sizeof(float), &x));
  const weft_tensor* inputs[] = {x};
  check(weft_model_predict(model, NULL, &input, inputs, 1, &output, &y, 1));
  printf("%s of %s:", output, input);
  for (int64_t i = 0; i < weft_tensor_elements(y); ++i) printf(" %.1f", ((const float*)weft_tensor_data(y))[i]);

  weft_server* server;
  check(weft_server_start("line", argv[1], -1, 0, &server));
  printf("\nserves: %s\n", weft_server_rest_port(server) > 0 ? "yes" : "no");
  weft_server_free(server, 1);
  weft_tensor_free(x);
  weft_tensor_free(y);
  weft_model_free(model);
  free(values);
  return 0;
}
