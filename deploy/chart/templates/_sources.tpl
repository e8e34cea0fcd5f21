{{/* Made of the sources in storage/sources.go: make generate */}}
{{- define "stsmigrate.sources" -}}csi or nfs{{- end }}
{{- define "stsmigrate.has-source" -}}has(object.spec.csi) || has(object.spec.nfs){{- end }}
{{- define "stsmigrate.disk" -}}has(object.spec.csi) ? 'csi ' + object.spec.csi.driver + ' ' + object.spec.csi.volumeHandle : has(object.spec.nfs) ? 'nfs ' + object.spec.nfs.server + ':' + object.spec.nfs.path : 'another source'{{- end }}
