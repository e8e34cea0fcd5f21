package notify

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

func TestWhatAReasonQuotesIsNotTold(t *testing.T) {
	for _, c := range []struct{ id, reason, want string }{
		{"GateFailed", `gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web in east: exit code 1: hunter2; expected exit code 0 and "hunter2" (asked 3 time(s) in 1m0s); ` + "`resume` tries again", "gate db (BeforeShrink) of web-2 (GateFailed): CMD shows the rest"},
		{"GateNotPassed", `overdue: gate db of web-2: exit code 1: hunter2; expected exit code 0 and hunter2`, "overdue: gate db of web-2 (GateNotPassed): CMD shows the rest"},
		{"GateNotPassed", `Job web-db of shop/web in east is being deleted`, ""},
		{"PodNotReady", `overdue: pod web-2 of shop/web in west is Running and not Ready: hunter2 (waited 10m0s)`, "overdue: pod web-2 of shop/web in west is Running and not Ready (PodNotReady): CMD shows the rest"},
		{"VolumeAttached", `volume pv-2 could not be attached to node a (VolumeAttachment csi-1: hunter2), and its driver`, "volume pv-2 could not be attached to node a (VolumeAttachment csi-1) (VolumeAttached): CMD shows the rest"},
		{"VolumeAttached", `volume pv-2 is still attached to node a (VolumeAttachment csi-1)`, ""},
		{"ExportConflict", `ServiceExport shop/web on the source conflicts with that of another cluster: Port hunter2; make the Services alike`, "ServiceExport shop/web on the source conflicts with that of another cluster (ExportConflict): CMD shows the rest"},
		{"RequestRefusedByAPI", `patching StatefulSet shop/web: admission webhook "a.example.com" denied the request: hunter2`, `patching StatefulSet shop/web: admission webhook "a.example.com" denied the request (RequestRefusedByAPI): CMD shows the rest`},
		{"RequestRefusedByAPI", `ValidatingAdmissionPolicy 'a' with binding 'b' denied request: hunter2`, `ValidatingAdmissionPolicy 'a' with binding 'b' denied request (RequestRefusedByAPI): CMD shows the rest`},
		{"ChecksFailed", `a check fails: DryRun: Pod "web-2" is invalid: spec.containers[0].env: Invalid value: "hunter2"`, `a check fails: DryRun: Pod "web-2" is invalid (ChecksFailed): CMD shows the rest`},
		{"RequestRefusedByAPI", `Internal error occurred: failed calling webhook "a": Post "https://u:hunter2@a": EOF`, `Internal error occurred: failed calling webhook "a" (RequestRefusedByAPI): CMD shows the rest`},
		{"RequestRefusedByAPI", `statefulsets.apps "web" is forbidden: User "x" cannot patch resource "statefulsets"`, ""},
		{"WriteWithoutEffect", `source: pause set: this write was sent 10 times without effect: hunter2; stop the writer`, `source: pause set: this write was sent 10 times without effect (WriteWithoutEffect): CMD shows the rest`},
		{"DeclarationInvalid", `spec.gates[0].name is "hunter2": expected a DNS label`, `spec.gates[0].name (DeclarationInvalid): CMD shows the rest`},
		{"", `gate db: the expression hunter2 is not valid`, `gate db: CMD shows the rest`},
		{"", `patch spec.destination.patches[0]: map: map[env:hunter2] does not contain declared merge key: name`, `patch spec.destination.patches[0]: CMD shows the rest`},
		{"", `destination: the cluster cannot be reached`, ""},
		{"SetDiffers", `a claim is in the way: data-web-2`, ""},
		{"", "", ""},
	} {
		got := Told(c.id, c.reason, "CMD")
		if c.want == "" {
			c.want = c.reason
		}
		if got != c.want {
			t.Errorf("%s\n\tis told as %s,\n\texpected        %s", c.reason, got, c.want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("it quotes others: %s", got)
		}
	}
}

func TestTheReasonsThatQuoteOthersExist(t *testing.T) {
	table, err := reasons.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range quoting() {
		if _, known := reasons.Find(table, id); !known {
			t.Errorf("there is no reason %s", id)
		}
	}
}
