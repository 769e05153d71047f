// SPDX-License-Identifier: Apache-2.0

// Katib's controllers of experiments, suggestions and trials with its checks of experiments, from its own module. What its
// own program has beside them wants a whole cluster: the containers that it puts into pods, a database, services with
// names. The services that it calls are found where --suggestions says, and what trials report lies in this process.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"strings"
	"sync"

	configapi "github.com/kubeflow/katib/pkg/apis/config/v1beta1"
	apis "github.com/kubeflow/katib/pkg/apis/controller"
	api "github.com/kubeflow/katib/pkg/apis/manager/v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1/consts"
	"github.com/kubeflow/katib/pkg/webhook/v1beta1/experiment"
	"github.com/spf13/viper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "katib")
		os.Exit(1)
	}
}

// resolves the names of a cluster's services: the database is this process, all others are one suggestion service.
type resolves struct{ scheme, suggestions, database string }

func (r resolves) Scheme() string                        { return r.scheme }
func (r resolves) ResolveNow(resolver.ResolveNowOptions) {}
func (r resolves) Close()                                {}
func (r resolves) Build(target resolver.Target, connection resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	address := r.suggestions
	if strings.HasPrefix(target.Endpoint(), consts.DefaultKatibDBManagerServiceIP+".") {
		address = r.database
	}
	return r, connection.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: address}}})
}

// database keeps what was reported of each trial, in the order of the reports.
type database struct {
	api.UnimplementedDBManagerServer
	mutex sync.Mutex
	logs  map[string][]*api.MetricLog
}

func (d *database) ReportObservationLog(_ context.Context, request *api.ReportObservationLogRequest) (*api.ReportObservationLogReply, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.logs[request.TrialName] = append(d.logs[request.TrialName], request.ObservationLog.MetricLogs...)
	return &api.ReportObservationLogReply{}, nil
}

func (d *database) GetObservationLog(_ context.Context, request *api.GetObservationLogRequest) (*api.GetObservationLogReply, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	found := &api.ObservationLog{}
	for _, log := range d.logs[request.TrialName] {
		if request.MetricName == "" || request.MetricName == log.Metric.Name {
			found.MetricLogs = append(found.MetricLogs, log)
		}
	}
	return &api.GetObservationLogReply{ObservationLog: found}, nil
}

func (d *database) DeleteObservationLog(_ context.Context, request *api.DeleteObservationLogRequest) (*api.DeleteObservationLogReply, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.logs, request.TrialName)
	return &api.DeleteObservationLogReply{}, nil
}

func main() {
	namespace := flag.String("namespace", "", "the namespace to look after")
	suggestions := flag.String("suggestions", "", "HOST:PORT of the service that answers for every algorithm")
	address := flag.String("database", "127.0.0.1:0", "where trials' metrics are reported")
	port := flag.Int("webhook-port", 0, "of the checks of experiments")
	folder := flag.String("webhook-folder", "", "with its tls.crt and tls.key")
	options := zap.Options{Development: true}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	listener, err := net.Listen("tcp", *address)
	must(err)
	server := grpc.NewServer()
	api.RegisterDBManagerServer(server, &database{logs: map[string][]*api.MetricLog{}})
	go func() { must(server.Serve(listener)) }()
	for _, scheme := range []string{"passthrough", "dns"} {
		resolver.Register(resolves{scheme, *suggestions, listener.Addr().String()})
	}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apis.AddToScheme, configapi.AddToScheme, clientgoscheme.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	viper.Set(consts.ConfigExperimentSuggestionName, "default")
	viper.Set(consts.ConfigTrialResources, []schema.GroupVersionKind{
		{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}})
	config := ctrl.GetConfigOrDie()
	// What it asks for in a second is of no matter here.
	config.QPS, config.Burst = 1000, 1000
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{
			*namespace: {}, consts.DefaultKatibNamespace: {}}},
	})
	must(err)
	must(controller.AddToManager(manager))
	hooks := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *folder})
	must(manager.Add(hooks))
	decoder := admission.NewDecoder(scheme)
	hooks.Register("/mutate-experiment", &webhook.Admission{Handler: experiment.NewExperimentDefaulter(manager.GetClient(), decoder)})
	hooks.Register("/validate-experiment", &webhook.Admission{Handler: experiment.NewExperimentValidator(manager.GetClient(), decoder)})
	must(manager.Start(ctrl.SetupSignalHandler()))
}
