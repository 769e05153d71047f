// SPDX-License-Identifier: Apache-2.0

// The reference operator's controller of TFJobs, from its own module, without its webhook (whose certificates want a
// cluster's names) and with two settings that its own program does not have: --qps and --burst of its client. Their
// defaults are those that its program gets.
package main

import (
	"flag"
	"os"

	"github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "reference")
		os.Exit(1)
	}
}

func main() {
	namespace := flag.String("namespace", "", "the namespace to look after; empty: all")
	threads := flag.Int("controller-threads", 1, "jobs at once")
	qps := flag.Float64("qps", 20, "API calls a second")
	burst := flag.Int("burst", 30, "API calls at once")
	gang := flag.String("gang-scheduler-name", "", "volcano, or a scheduler with the coscheduling plugin; empty: none")
	address := flag.String("metrics-bind-address", "0", "where metrics are served; 0: nowhere")
	options := zap.Options{Development: true, StacktraceLevel: zapcore.DPanicLevel}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, volcano.AddToScheme,
		schedulerplugins.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	config := ctrl.GetConfigOrDie()
	config.QPS = float32(*qps)
	config.Burst = *burst
	var seen cache.Options
	if *namespace != "" {
		seen.DefaultNamespaces = map[string]cache.Config{*namespace: {}}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: *address},
		Cache:   seen,
	})
	must(err)
	setup := common.GenNonGangSchedulerSetupFunc()
	if *gang == string(common.GangSchedulerVolcano) {
		setup = common.GenVolcanoSetupFunc(volcanoclient.NewForConfigOrDie(config))
	} else if *gang != "" {
		setup = common.GenSchedulerPluginsSetupFunc(manager.GetClient(), *gang)
	}
	must(tensorflow.NewReconciler(manager, setup).SetupWithManager(manager, *threads))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
