// An operator of AppService written with controller-runtime: what the bench measures the project's own beside.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	metrics := flag.String("metrics-bind-address", ":8080", "address of the metrics; 0 turns them off")
	leaderElect := flag.Bool("leader-elect", true, "work only while holding the lease")
	namespace := flag.String("leader-election-namespace", "", "namespace of the lease; default: the Pod's")
	flag.Parse() // --kubeconfig is controller-runtime's own
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *metrics, *leaderElect, *namespace); err != nil {
		ctrl.Log.Error(err, "operator failed")
		os.Exit(1)
	}
}

func run(ctx context.Context, metrics string, leaderElect bool, namespace string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server's Priority and Fairness limits
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       server.Options{BindAddress: metrics},
		LeaderElection:                leaderElect,
		LeaderElectionID:              "appservice-peer",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		// The field sets of the children are read; those of the custom resources are not.
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&AppService{}: {Transform: cache.TransformStripManagedFields()},
		}},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&AppService{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(childChanged)).
		Owns(&corev1.Service{}, builder.WithPredicates(childChanged)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 16,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				5*time.Millisecond, 5*time.Minute),
		}).
		Complete(&reconciler{Client: mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
