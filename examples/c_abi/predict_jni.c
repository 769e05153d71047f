/* SPDX-License-Identifier: Apache-2.0 */
/* The native methods of Predict.java. */
#include <jni.h>

#include "weft_c.h"

/* True, with an exception for Java, if there is an error. */
static int failed(JNIEnv* env, weft_error* error) {
  if (error == NULL) return 0;
  (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalArgumentException"), weft_error_message(error));
  weft_error_free(error);
  return 1;
}

JNIEXPORT jlong JNICALL Java_Predict_load(JNIEnv* env, jclass type, jstring folder) {
  weft_model* model = NULL;
  const char* path = (*env)->GetStringUTFChars(env, folder, NULL);
  failed(env, weft_model_load(path, NULL, &model));
  (*env)->ReleaseStringUTFChars(env, folder, path);
  return (jlong)(intptr_t)model;
}

JNIEXPORT jstring JNICALL Java_Predict_input(JNIEnv* env, jclass type, jlong model) {
  return (*env)->NewStringUTF(env, weft_model_input((weft_model*)(intptr_t)model, NULL, 0));
}

JNIEXPORT jstring JNICALL Java_Predict_output(JNIEnv* env, jclass type, jlong model) {
  return (*env)->NewStringUTF(env, weft_model_output((weft_model*)(intptr_t)model, NULL, 0));
}

JNIEXPORT jfloatArray JNICALL Java_Predict_predict(JNIEnv* env, jclass type, jlong handle, jfloatArray values) {
  weft_model* model = (weft_model*)(intptr_t)handle;
  const int64_t count = (*env)->GetArrayLength(env, values);
  jfloat* x = (*env)->GetFloatArrayElements(env, values, NULL);
  weft_tensor *in = NULL, *out = NULL;
  const char* input = weft_model_input(model, NULL, 0);
  const char* output = weft_model_output(model, NULL, 0);
  weft_error* error = weft_tensor_new(WEFT_FLOAT, &count, 1, x, (size_t)count * sizeof(float), &in);
  (*env)->ReleaseFloatArrayElements(env, values, x, JNI_ABORT);
  const weft_tensor* inputs[] = {in};
  if (error == NULL) error = weft_model_predict(model, NULL, &input, inputs, 1, &output, &out, 1);
  weft_tensor_free(in);
  if (failed(env, error)) return NULL;
  const jsize results = (jsize)weft_tensor_elements(out);
  jfloatArray array = (*env)->NewFloatArray(env, results);
  (*env)->SetFloatArrayRegion(env, array, 0, results, weft_tensor_data(out));
  weft_tensor_free(out);
  return array;
}

JNIEXPORT void JNICALL Java_Predict_free(JNIEnv* env, jclass type, jlong model) {
  weft_model_free((weft_model*)(intptr_t)model);
}
