package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

var groupVersion = schema.GroupVersion{Group: "kosmos.io", Version: "v1"}

// AppService is an application: a Deployment and, if it has ports, a NodePort Service.
type AppService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppServiceSpec   `json:"spec"`
	Status AppServiceStatus `json:"status,omitempty"`
}

// AppServiceSpec holds the fields of the tutorial. Apply configurations tell unset fields from zero values, and are
// applied as they are.
type AppServiceSpec struct {
	Size      int32                                            `json:"size"`
	Image     string                                           `json:"image"`
	Ports     []corev1ac.ServicePortApplyConfiguration         `json:"ports,omitempty"`
	Resources *corev1ac.ResourceRequirementsApplyConfiguration `json:"resources,omitempty"`
	Envs      []corev1ac.EnvVarApplyConfiguration              `json:"envs,omitempty"`
}

// AppServiceStatus mirrors the Deployment's status. Counters are pointers, so that a merge patch holds a first 0.
type AppServiceStatus struct {
	ObservedGeneration  int64              `json:"observedGeneration,omitempty"`
	Replicas            *int32             `json:"replicas,omitempty"`
	UpdatedReplicas     *int32             `json:"updatedReplicas,omitempty"`
	ReadyReplicas       *int32             `json:"readyReplicas,omitempty"`
	AvailableReplicas   *int32             `json:"availableReplicas,omitempty"`
	UnavailableReplicas *int32             `json:"unavailableReplicas,omitempty"`
	TerminatingReplicas *int32             `json:"terminatingReplicas,omitempty"`
	CollisionCount      *int32             `json:"collisionCount,omitempty"`
	Selector            string             `json:"selector,omitempty"`
	Ports               []PortStatus       `json:"ports,omitempty"`
	PortSummary         string             `json:"portSummary,omitempty"`
	Image               string             `json:"image,omitempty"`
	Conditions          []metav1.Condition `json:"conditions,omitempty"`
}

// PortStatus is a port of the Service with its allocated node port.
type PortStatus struct {
	Name     string `json:"name,omitempty"`
	Port     int32  `json:"port"`
	NodePort int32  `json:"nodePort,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

// AppServiceList is a list of AppServices.
type AppServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AppService `json:"items"`
}

// DeepCopy copies metadata and status; the spec is never written here, so copies share it.
func (in *AppService) DeepCopy() *AppService {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	// Pointers in the status are replaced, never written through.
	out.Status.Ports = append([]PortStatus(nil), in.Status.Ports...)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (in *AppService) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *AppServiceList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]AppService, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopy()
	}
	return &out
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &AppService{}, &AppServiceList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
