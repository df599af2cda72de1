package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
)

const selectorLabel = "kosmos.io/appservice"

func selector(app *AppService) map[string]string {
	return map[string]string{selectorLabel: app.Name}
}

func labels(app *AppService) map[string]string {
	return map[string]string{
		"app":                          app.Name,
		"app.kubernetes.io/managed-by": "reconstruct",
		"app.kubernetes.io/name":       app.Name,
		selectorLabel:                  app.Name,
	}
}

func owner(app *AppService) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind("AppService").
		WithName(app.Name).WithUID(app.UID).WithController(true).WithBlockOwnerDeletion(true)
}

// deployment returns the desired Deployment.
func deployment(app *AppService) (*appsv1ac.DeploymentApplyConfiguration, error) {
	ports, err := containerPorts(app.Spec.Ports)
	if err != nil {
		return nil, err
	}
	container := corev1ac.Container().WithName(app.Name).WithImage(app.Spec.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent)
	container.Resources, container.Env, container.Ports = app.Spec.Resources, app.Spec.Envs, ports
	return appsv1ac.Deployment(app.Name, app.Namespace).WithLabels(labels(app)).WithOwnerReferences(owner(app)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(app.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(app))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels(app)).
				WithSpec(corev1ac.PodSpec().WithContainers(container)))), nil
}

// service returns the desired Service.
func service(app *AppService) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().WithType(corev1.ServiceTypeNodePort).WithSelector(selector(app))
	for _, port := range app.Spec.Ports {
		port.Protocol = ptr.To(protocol(port)) // part of the port's key in an apply
		if port.TargetPort == nil {
			port.TargetPort = ptr.To(intstr.FromInt32(*port.Port))
		}
		spec.Ports = append(spec.Ports, port)
	}
	return corev1ac.Service(app.Name, app.Namespace).WithLabels(labels(app)).WithOwnerReferences(owner(app)).WithSpec(spec)
}

func protocol(port corev1ac.ServicePortApplyConfiguration) corev1.Protocol {
	return ptr.Deref(port.Protocol, corev1.ProtocolTCP)
}

// containerPorts returns one container port for each number and protocol; a target port that is a name becomes its name.
func containerPorts(ports []corev1ac.ServicePortApplyConfiguration) ([]corev1ac.ContainerPortApplyConfiguration, error) {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	var result []corev1ac.ContainerPortApplyConfiguration
	index, named := map[key]int{}, map[string]key{}
	for _, port := range ports {
		k, name := key{*port.Port, protocol(port)}, ""
		if target := port.TargetPort; target != nil && target.Type == intstr.Int {
			k.number = target.IntVal
		} else if target != nil {
			name = target.StrVal
		}
		at, found := index[k]
		if !found {
			at = len(result)
			index[k] = at
			result = append(result, *corev1ac.ContainerPort().WithContainerPort(k.number).WithProtocol(k.protocol))
		}
		if name == "" {
			continue
		}
		if other, taken := named[name]; taken && other != k {
			return nil, fmt.Errorf("targetPort %q names two container ports, %d and %d", name, other.number, k.number)
		}
		named[name] = k
		result[at].Name = &name
	}
	return result, nil
}
