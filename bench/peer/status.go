package main

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// verdict is what the conditions Ready, Reconciling and Stalled are derived from.
type verdict struct {
	ready, reconciling, stalled metav1.ConditionStatus
	reason, message             string
}

func progressing(reason, message string) verdict {
	return verdict{metav1.ConditionUnknown, metav1.ConditionTrue, metav1.ConditionFalse, reason, message}
}

func stalled(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue, reason, message}
}

// setStatus writes the status that the children have into app. service is empty for an application without ports.
func setStatus(app *AppService, deployment *appsv1.Deployment, service *corev1.Service) {
	status := &app.Status
	status.Selector = selectorLabel + "=" + app.Name
	status.Ports, status.PortSummary = ports(service)
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		status.Image = containers[0].Image
	}
	live := deployment.Status
	if live.ObservedGeneration > 0 {
		status.Replicas, status.UpdatedReplicas = ptr.To(live.Replicas), ptr.To(live.UpdatedReplicas)
		status.ReadyReplicas, status.AvailableReplicas = ptr.To(live.ReadyReplicas), ptr.To(live.AvailableReplicas)
		status.UnavailableReplicas = ptr.To(live.UnavailableReplicas)
		status.TerminatingReplicas, status.CollisionCount = live.TerminatingReplicas, live.CollisionCount
	}
	for _, kind := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing, appsv1.DeploymentReplicaFailure} {
		mirror(app, kind, live.Conditions)
	}
	setVerdict(app, judge(app.Spec.Size, deployment))
}

func setVerdict(app *AppService, v verdict) {
	app.Status.ObservedGeneration = app.Generation
	for kind, status := range map[string]metav1.ConditionStatus{"Ready": v.ready, "Reconciling": v.reconciling, "Stalled": v.stalled} {
		set(app, kind, status, v.reason, v.message)
	}
}

func set(app *AppService, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: app.Generation,
	})
}

func mirror(app *AppService, kind appsv1.DeploymentConditionType, conditions []appsv1.DeploymentCondition) {
	for _, c := range conditions {
		if c.Type == kind {
			set(app, string(kind), metav1.ConditionStatus(c.Status), c.Reason, c.Message)
			return
		}
	}
	meta.RemoveStatusCondition(&app.Status.Conditions, string(kind))
}

// judge follows `kubectl rollout status`.
func judge(size int32, deployment *appsv1.Deployment) verdict {
	live := deployment.Status
	if live.ObservedGeneration == 0 {
		return progressing("Pending", "the Deployment's controller has yet to report on it")
	}
	if live.ObservedGeneration < deployment.Generation {
		return progressing("RollingOut", "the Deployment's controller has yet to see the latest change")
	}
	for _, c := range live.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return stalled(c.Reason, c.Message)
		}
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return verdict{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse, "ReplicaFailure", c.Message}
		}
	}
	switch {
	case live.UpdatedReplicas < size:
		return progressing("RollingOut", fmt.Sprintf("%d of %d replicas run the present spec", live.UpdatedReplicas, size))
	case live.Replicas > live.UpdatedReplicas:
		return progressing("RollingOut", fmt.Sprintf("replicas of an earlier spec still to go: %d", live.Replicas-live.UpdatedReplicas))
	case live.Replicas > size:
		return progressing("RollingOut", fmt.Sprintf("surplus replicas still to go: %d", live.Replicas-size))
	case live.AvailableReplicas < size:
		return progressing("RollingOut", fmt.Sprintf("%d of %d replicas are available", live.AvailableReplicas, size))
	}
	v := verdict{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse, "Available", fmt.Sprintf("%d of %d replicas are available", size, size)}
	if size == 0 {
		v.reason, v.message = "ScaledToZero", "the size is 0, and no replica is left"
	}
	return v
}

func ports(service *corev1.Service) ([]PortStatus, string) {
	var ports []PortStatus
	var summary []string
	for _, p := range service.Spec.Ports {
		ports = append(ports, PortStatus{Name: p.Name, Port: p.Port, NodePort: p.NodePort, Protocol: string(p.Protocol)})
		summary = append(summary, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
	}
	return ports, strings.Join(summary, ",")
}
