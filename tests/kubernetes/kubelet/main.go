// SPDX-License-Identifier: Apache-2.0

// The kubelet, built from its module.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	os.Exit(cli.Run(kubelet.NewKubeletCommand()))
}
