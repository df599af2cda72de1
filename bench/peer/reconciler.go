package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	gosync "sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	fieldManager  = "appservice-controller"
	statusManager = "appservice-status"
	patience      = 5 * time.Second
)

// childChanged drops updates of a child that change nothing which a reconcile reads.
var childChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
		return false // resync
	}
	if !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
		!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) {
		return true
	}
	switch before := e.ObjectOld.(type) {
	case *appsv1.Deployment:
		after := e.ObjectNew.(*appsv1.Deployment)
		return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
	case *corev1.Service:
		return !equality.Semantic.DeepEqual(before.Spec, e.ObjectNew.(*corev1.Service).Spec)
	}
	return true
}}

// reconciler makes the children of an AppService and tells of them in its status.
type reconciler struct {
	client.Client
	inSync gosync.Map // by child, the state in which it was last known to be as desired
}

// child is the key of reconciler.inSync.
type child struct {
	types.NamespacedName
	kind string
}

// state is of an AppService's generation and of what the field manager owns of the child: who changes an owned field
// takes it away from its owner.
type state struct {
	app, child types.UID
	generation int64
	owned      [sha256.Size]byte
}

func stateOf(app *AppService, live client.Object) state {
	s := state{app: app.UID, child: live.GetUID(), generation: app.Generation}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == fieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			s.owned = sha256.Sum256(entry.FieldsV1.Raw)
		}
	}
	return s
}

// notOwned is the error of a child's name that is taken by an object of somebody else.
type notOwned struct{ child client.Object }

func (e notOwned) Error() string {
	return fmt.Sprintf("%T %s exists and is not controlled by this AppService", e.child, client.ObjectKeyFromObject(e.child))
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	app := &AppService{}
	if err := r.Get(ctx, request.NamespacedName, app); err != nil {
		for _, kind := range []any{&appsv1.Deployment{}, &corev1.Service{}} {
			r.inSync.Delete(child{request.NamespacedName, fmt.Sprintf("%T", kind)})
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the children
	}
	before := app.DeepCopy()
	desired, err := deployment(app)
	if err != nil {
		setVerdict(app, stalled("RenderFailed", err.Error()))
		return ctrl.Result{}, r.writeStatus(ctx, before, app)
	}

	liveDeployment, liveService := &appsv1.Deployment{}, &corev1.Service{}
	deploymentChanged, err := sync(ctx, r, app, liveDeployment, desired, appsv1ac.ExtractDeployment)
	var serviceChanged bool
	if err == nil && len(app.Spec.Ports) > 0 {
		serviceChanged, err = sync(ctx, r, app, liveService, service(app), corev1ac.ExtractService)
	} else if err == nil {
		serviceChanged, err = r.prune(ctx, app, liveService)
	}
	if conflict, ok := err.(notOwned); ok {
		setVerdict(app, stalled("OwnershipConflict", conflict.Error()))
		return ctrl.Result{}, r.writeStatus(ctx, before, app)
	}
	// The event of what has changed brings the next pass, which sees what the child's controller made of it.
	if err != nil || deploymentChanged || serviceChanged {
		return ctrl.Result{}, err
	}
	// The controller of a new Deployment reports within moments: one status instead of two.
	if liveDeployment.Status.ObservedGeneration == 0 && time.Since(liveDeployment.CreationTimestamp.Time) < patience {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	setStatus(app, liveDeployment, liveService)
	return ctrl.Result{}, r.writeStatus(ctx, before, app)
}

// sync applies a child unless what the field manager owns of the live object is what is desired, and reports whether
// that changed the object, which is live then. The client waits for the cache to hold its own earlier writes.
func sync[L client.Object, D runtime.ApplyConfiguration](
	ctx context.Context, r *reconciler, app *AppService, live L, desired D, extract func(L, string) (D, error),
) (bool, error) {
	found, err := r.find(ctx, app, live)
	if err != nil {
		return false, err
	}
	key := child{client.ObjectKeyFromObject(app), fmt.Sprintf("%T", live)}
	if found {
		if known, ok := r.inSync.Load(key); ok && known == stateOf(app, live) {
			return false, nil
		}
		owned, err := extract(live, fieldManager)
		if err != nil {
			return false, err
		}
		if equality.Semantic.DeepEqual(owned, desired) {
			r.inSync.Store(key, stateOf(app, live))
			return false, nil
		}
	}
	body, err := json.Marshal(desired)
	if err != nil {
		return false, err
	}
	before := live.GetResourceVersion()
	live.SetNamespace(app.Namespace)
	live.SetName(app.Name)
	patch := client.RawPatch(types.ApplyPatchType, body)
	if err := r.Patch(ctx, live, patch, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return false, err
	}
	r.inSync.Store(key, stateOf(app, live))
	return live.GetResourceVersion() != before, nil
}

// prune deletes the Service of an application that has no ports any more.
func (r *reconciler) prune(ctx context.Context, app *AppService, live *corev1.Service) (bool, error) {
	found, err := r.find(ctx, app, live)
	if err != nil || !found {
		return false, err
	}
	return true, client.IgnoreNotFound(r.Delete(ctx, live, client.Preconditions{UID: &live.UID}))
}

// find reads a child, and fails with notOwned if it isn't controlled by app.
func (r *reconciler) find(ctx context.Context, app *AppService, live client.Object) (bool, error) {
	if err := r.Get(ctx, client.ObjectKeyFromObject(app), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(live, app) {
		return false, notOwned{live}
	}
	return true, nil
}

// writeStatus patches the status if it differs from what is stored.
func (r *reconciler) writeStatus(ctx context.Context, before, after *AppService) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	err := r.Status().Patch(ctx, after, client.MergeFrom(before), client.FieldOwner(statusManager))
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile
	}
	return err
}
