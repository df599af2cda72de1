// Command health says how GitOps tools judge custom resources. Standard input is a JSON list of
// {"object": ..., "script": "text of a health.lua"}; standard output a list of {"argo": ..., "kstatus": ...}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type question struct {
	Object map[string]any `json:"object"`
	// Empty where only kstatus is asked.
	Script string `json:"script"`
}

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Argo    *verdict `json:"argo,omitempty"`
	Kstatus verdict  `json:"kstatus"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		return err
	}
	answers := make([]answer, 0, len(questions))
	for _, each := range questions {
		judged, err := judge(each)
		if err != nil {
			return err
		}
		answers = append(answers, judged)
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func judge(asked question) (answer, error) {
	object, err := decoded(asked.Object)
	if err != nil {
		return answer{}, err
	}
	result, err := status.Compute(object)
	if err != nil {
		return answer{}, fmt.Errorf("kstatus: %w", err)
	}
	judged := answer{Kstatus: verdict{Status: result.Status.String(), Message: result.Message}}
	if asked.Script == "" {
		return judged, nil
	}
	judged.Argo, err = runHealth(asked.Script, object.Object)
	return judged, err
}

// decoded makes whole numbers int64, as they are in clients of Kubernetes.
func decoded(object map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	return result, result.UnmarshalJSON(text)
}
