{{- define "reconstruct.image" -}}
{{- .Values.image.repository }}
{{- with .Values.image.tag }}:{{ . }}{{ end }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "reconstruct.metricsPort" -}}
{{- .Values.metrics.secure | ternary 8443 8080 }}
{{- end }}

{{/* Labels that only the operator's Pods and their Service carry. */}}
{{- define "reconstruct.podLabels" -}}
app.kubernetes.io/name: reconstruct
reconstruct.kosmos.io/installation: {{ .Release.Namespace | quote }}
{{- end }}

{{- define "reconstruct.labels" -}}
{{ include "reconstruct.podLabels" . }}
app.kubernetes.io/part-of: reconstruct
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}

{{/* Files of files/kinds whose kinds are on, as a list. A kind is on by its short or by its full name. */}}
{{- define "reconstruct.kinds" -}}
{{- range $path, $_ := .Files.Glob "files/kinds/*.yaml" }}
{{- $name := base $path | trimSuffix ".yaml" }}
{{- if or (get $.Values.kinds $name) (get $.Values.kinds (splitList "." $name | first)) }}
{{- $kind := tpl ($.Files.Get $path) $ | fromYaml }}
{{- with $kind.Error }}{{ fail (printf "%s: %s" $path .) }}{{ end }}
- {{ set $kind "name" $name | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{- define "reconstruct.kindNames" -}}
{{- $names := list }}
{{- range include "reconstruct.kinds" . | fromYamlArray }}{{ $names = append $names .name }}{{ end }}
{{- join "," $names }}
{{- end }}
