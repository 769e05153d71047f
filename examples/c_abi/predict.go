// SPDX-License-Identifier: Apache-2.0

// Asks a model for y of x: predict MODEL 10 20
package main

// #cgo LDFLAGS: -lweft_c
// #include <stdlib.h>
// #include "weft_c.h"
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"
)

func check(err *C.weft_error) {
	if err == nil {
		return
	}
	defer C.weft_error_free(err)
	fmt.Fprintf(os.Stderr, "predict: %s (code %d)\n", C.GoString(C.weft_error_message(err)), C.weft_error_code(err))
	os.Exit(1)
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "predict: expected the folder of a model and numbers")
		os.Exit(2)
	}
	var values []C.float
	for _, word := range os.Args[2:] {
		value, err := strconv.ParseFloat(word, 32)
		if err != nil {
			fmt.Fprintln(os.Stderr, "predict:", err)
			os.Exit(2)
		}
		values = append(values, C.float(value))
	}
	folder := C.CString(os.Args[1] + "/1")
	defer C.free(unsafe.Pointer(folder))
	var model *C.weft_model
	check(C.weft_model_load(folder, nil, &model))
	defer C.weft_model_free(model)
	count := C.int64_t(len(values))
	var x, y *C.weft_tensor
	check(C.weft_tensor_new(C.WEFT_FLOAT, &count, 1, unsafe.Pointer(&values[0]), C.size_t(4*len(values)), &x))
	defer C.weft_tensor_free(x)
	input, output := C.weft_model_input(model, nil, 0), C.weft_model_output(model, nil, 0)
	check(C.weft_model_predict(model, nil, &input, &x, 1, &output, &y, 1))
	defer C.weft_tensor_free(y)
	fmt.Printf("%s of %s:", C.GoString(output), C.GoString(input))
	for _, value := range unsafe.Slice((*C.float)(C.weft_tensor_data(y)), int(C.weft_tensor_elements(y))) {
		fmt.Printf(" %.1f", float32(value))
	}
	fmt.Println()
}
