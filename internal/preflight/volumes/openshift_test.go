package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

func TestOtherIDsOfTheNamespaceOnOpenShiftAreWarnedOf(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	ids := func(name, uid, mcs string) []client.Object {
		notes := map[string]string{}
		if uid != "" {
			notes = map[string]string{"openshift.io/sa.scc.uid-range": uid, "openshift.io/sa.scc.supplemental-groups": uid, "openshift.io/sa.scc.mcs": mcs}
		}
		return []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: notes}}}
	}
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"no OpenShift":  {checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "", ""), There: ids("mall", "", "")}, nil},
		"the same":      {checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "1000/10000", "s0:c1"), There: ids("mall", "1000/10000", "s0:c1")}, nil},
		"no namespace":  {checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "1000/10000", "s0:c1")}, nil},
		"no volumes":    {checktest.Estate{Here: ids("shop", "1000/10000", "s0:c1"), There: ids("mall", "2000/10000", "s0:c2")}, nil},
		"another label": {checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "1000/10000", "s0:c1"), There: ids("mall", "1000/10000", "s0:c2")}, []string{`WARN ...namespace mall...mcs is "s0:c1" here and "s0:c2" there...oc --context my-west annotate namespace mall --overwrite openshift.io/sa.scc.mcs=s0:c1`}},
		"other ids": {
			checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "1000/10000", "s0:c1"), There: ids("mall", "2000/10000", "s0:c2")},
			[]string{`WARN ...uid-range is "1000/10000" here and "2000/10000" there...--overwrite openshift.io/sa.scc.uid-range=1000/10000 openshift.io/sa.scc.supplemental-groups=1000/10000 openshift.io/sa.scc.mcs=s0:c1`},
		},
		"from OpenShift to another": {
			checktest.Estate{Volumes: []string{nfs}, Here: ids("shop", "1000/10000", "s0:c1"), There: ids("mall", "", "")},
			[]string{`WARN ...uid-range is "1000/10000" here and "" there...with --patch (runAsUser, fsGroup, seLinuxOptions)`},
		},
		"in one cluster": {
			checktest.Estate{One: true, Volumes: []string{nfs}, Here: append(ids("shop", "1000/10000", "s0:c1"), ids("mall", "2000/10000", "s0:c1")...)},
			[]string{`WARN ...oc --context my-east annotate namespace mall`},
		},
	} {
		t.Run(name, func(t *testing.T) { c.Finds(t, FileOwners, c.want...) })
	}
}
