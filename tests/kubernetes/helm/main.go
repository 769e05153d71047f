// SPDX-License-Identifier: Apache-2.0

// helm prints the objects of a chart as `helm template --include-crds` does, by Helm's own engine:
//
//	helm CHART NAMESPACE VALUES
//
// VALUES are YAML. Who needs a newer Kubernetes than the chart asks for is refused.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func render(folder, namespace, text string) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "weft", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for _, definition := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", definition.File.Data)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n%s\n", files[name])
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "helm: say CHART NAMESPACE VALUES")
		os.Exit(2)
	}
	if err := render(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}
