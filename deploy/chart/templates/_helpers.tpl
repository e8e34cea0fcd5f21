{{- define "stsmigrate.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: stsmigrate
{{- end }}

{{/* The install that an object outside of its namespace belongs to: `stsmigrate install` takes over no
object of another install. */}}
{{- define "stsmigrate.install" -}}
stsmigrate.dev/install: {{ .Release.Namespace }}
{{- end }}

{{/* A cluster has the object once. helm refuses one of another release without saying what to do. */}}
{{- define "stsmigrate.once" -}}
{{- $notes := dig "metadata" "annotations" dict (lookup .api .kind "" .name | default dict) }}
{{- $of := get $notes "meta.helm.sh/release-namespace" }}
{{- if and $of (ne $of .root.Release.Namespace) }}
{{- fail (printf "%s %s belongs to the release %s in namespace %s, and a cluster has it once: %s" .kind .name (get $notes "meta.helm.sh/release-name") $of .remedy) }}
{{- end }}
{{- end }}

{{/* The settings of every pod. The restricted Pod Security Standard accepts them. */}}
{{- define "stsmigrate.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .of.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .of.affinity }}
affinity: {{ toJson . }}
{{- end }}
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app.kubernetes.io/name: {{ .name }}}}}
{{- end }}

{{/* A drain evicts one pod at a time, so that another pod takes over. */}}
{{- define "stsmigrate.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stsmigrate.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector: {matchLabels: {app.kubernetes.io/name: {{ .name }}}}
{{- end }}

{{- define "stsmigrate.image" -}}
{{ with .root.Values.image.registry }}{{ . }}/{{ end }}{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ with index .root.Values.image.digests .name }}@{{ . }}{{ end }}
{{- end }}

{{- define "stsmigrate.container" -}}
name: {{ .name }}
image: {{ include "stsmigrate.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
livenessProbe: {httpGet: {path: /healthz, port: health}}
readinessProbe: {httpGet: {path: /readyz, port: health}}
resources: {{ toJson .of.resources }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The volume of the certificate of the metrics, if the values name its Secret. */}}
{{- define "stsmigrate.certificate" -}}
- name: metrics
  secret: {secretName: {{ . }}}
{{- end }}

{{/* The pods of a program accept connections only to the ports that they serve. Their own connections to API servers, at
any address, are not limited. */}}
{{- define "stsmigrate.network" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stsmigrate.labels" . | nindent 4 }}
spec:
  podSelector: {matchLabels: {app.kubernetes.io/name: {{ .name }}}}
  policyTypes: [Ingress]
  ingress:
  - ports: {{ toJson .ports }}
{{- end }}

{{- define "stsmigrate.account" -}}
{kind: ServiceAccount, name: {{ .name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{/* Whether a request comes from a user who carries no plans out. */}}
{{- define "stsmigrate.others" -}}
!(request.userInfo.username in {{ toJson .users }}{{ with .groups }} || has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in {{ toJson . }}){{ end }})
{{- end }}
