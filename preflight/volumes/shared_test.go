package volumes

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/preflight/checktest"
)

func TestASharedClaimNeedsModesForBothSides(t *testing.T) {
	const (
		written = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		read    = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media, readOnly: true}}]}"
		mounted = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m, readOnly: true}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		twice   = "{initContainers: [{name: i, volumeMounts: [{name: media, mountPath: /m}]}], containers: [{name: web, volumeMounts: [{name: media, mountPath: /m, readOnly: true}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		device  = "{containers: [{name: web, volumeDevices: [{name: media, devicePath: /dev/m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		refused = "FAIL ...claim media, which the pod template names: it is [...and pods of both sides mount it at the same time"
	)
	for name, c := range map[string]struct {
		claim, volume, spec, patch string
		want                       []string
	}{
		"many writers":                     {"ReadWriteMany", "ReadWriteMany", written, "", nil},
		"one writer of a volume for all":   {"ReadWriteOnce", "ReadWriteOnce, ReadOnlyMany", written, "", []string{refused}},
		"one writer, read only":            {"ReadWriteOnce", "ReadWriteOnce", read, "", []string{refused}},
		"one writer or many readers":       {"ReadWriteOnce, ReadOnlyMany", "ReadWriteOnce, ReadOnlyMany", read, "", []string{refused}},
		"many readers who write":           {"ReadOnlyMany", "ReadOnlyMany", written, "", []string{refused}},
		"many readers":                     {"ReadOnlyMany", "ReadOnlyMany", read, "", nil},
		"many readers by their mounts":     {"ReadOnlyMany", "ReadOnlyMany", mounted, "", nil},
		"one of whom writes":               {"ReadOnlyMany", "ReadOnlyMany", twice, "", []string{refused}},
		"a device that is written":         {"ReadOnlyMany", "ReadOnlyMany", device, "", []string{refused}},
		"readers whom a patch lets write":  {"ReadOnlyMany", "ReadOnlyMany", read, "spec: {template: {spec: {volumes: [{name: media, persistentVolumeClaim: {claimName: media, readOnly: false}}]}}}", []string{refused}},
		"a volume for less than the claim": {"ReadWriteMany", "ReadWriteOnce", written, "", []string{"FAIL ...its volume is [ReadWriteOnce] and can be mounted by one node only"}},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.Estate{
				Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Claim: "accessModes: [" + c.claim + "]", Patch: c.patch,
				Shared: "spec: {accessModes: [" + c.volume + "], nfs: {server: files, path: /media}}", Spec: c.spec,
			}.Finds(t, SharedVolumes, c.want...)
		})
	}
}
