{{/* Made of the sources in storage/sources.go: make generate */}}
{{- define "stsmigrate.sources" -}}csi or nfs{{- end }}
{{- define "stsmigrate.has-source" -}}has(object.spec.csi) || has(object.spec.nfs){{- end }}
{{- define "stsmigrate.source" -}}has(object.spec.csi) ? 'csi' : has(object.spec.nfs) ? 'nfs' : 'another source'{{- end }}
