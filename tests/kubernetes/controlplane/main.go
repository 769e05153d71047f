// SPDX-License-Identifier: Apache-2.0

// A real control plane in one program: etcd, kube-apiserver and kube-controller-manager, chosen by the first argument.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func run(command *cobra.Command) {
	command.SetArgs(os.Args[2:])
	os.Exit(cli.Run(command))
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "controlplane: say etcd, kube-apiserver or kube-controller-manager")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "etcd":
		etcdmain.Main(append([]string{"etcd"}, os.Args[2:]...))
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(manager.NewControllerManagerCommand())
	default:
		fmt.Fprintf(os.Stderr, "controlplane: there is no program %q\n", os.Args[1])
		os.Exit(2)
	}
}
