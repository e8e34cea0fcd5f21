package move_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// oneClaim gives a set a single claim template, of this class.
func oneClaim(class string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{newClaim("data", class)}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// handmade returns a statically provisioned volume for one claim.
func handmade(on *end, claim string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: on.namespace + "-" + claim}, Spec: corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		StorageClassName:              "by-hand-" + on.namespace,
		ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: on.namespace, Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: cluster.Driver, VolumeHandle: on.namespace + "-" + claim,
		}},
	}}
	if change != nil {
		change(pv)
	}
	return pv
}

// furnished creates cluster-scoped objects, and deletes them at the end of the test.
func (s *migration) furnished(on *end, all ...client.Object) {
	s.t.Helper()
	for _, o := range all {
		s.create(on, o)
		s.t.Cleanup(func() { _ = on.Delete(context.Background(), o) })
	}
}

// in sets a label on all nodes of a cluster.
func (s *migration) in(on *end, key, value string) {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := on.List(s.t.Context(), &nodes); err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
		if err := on.Patch(s.t.Context(), &nodes.Items[i], client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// asked writes the Migration file and returns the arguments of plan.
func (s *migration) asked(spec string) []string {
	s.t.Helper()
	file := s.file("apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  source: {name: web}\n" + spec)
	args := s.planArgs("-f", file)
	return append(args[:1:1], args[2:]...) // the file names the set
}

const zone = "test.stsmigrate.dev/zone"

// Names that differ in the other cluster are translated in volume, claim and set. On the source they stay
// unchanged.
func TestTranslatesVolumesForTheOtherCluster(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"finalize", "abort"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			ends := func(on *end, claim string) *corev1.PersistentVolume {
				return handmade(on, claim, func(pv *corev1.PersistentVolume) {
					pv.Spec.CSI.VolumeAttributes = map[string]string{"clusterID": "ceph-east", "pool": "fast"}
					pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: on.namespace, Name: "csi-east"}
					pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{"east-1"}}},
					}}}}
				})
			}
			s := newMigration(t, reimport, options{replicas: 2, objects: func(s *migration) {
				s.in(s.source, zone, "east-1")
				s.in(s.destination, zone+"-of-west", "west-1")
				s.furnished(s.source, ends(s.source, "data-web-0"), ends(s.source, "data-web-1"))
				s.create(s.source, &corev1.Secret{ObjectMeta: s.source.named("csi-east"), StringData: map[string]string{"key": "canary-5d1c"}})
				s.create(s.destination, &corev1.Secret{ObjectMeta: s.destination.named("csi-west"), StringData: map[string]string{"key": "canary-5d1d"}})
			}, classOf: "by-hand-"})
			class := "by-hand-" + s.source.namespace
			s.furnished(s.source, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: cluster.Driver, Parameters: map[string]string{"clusterID": "ceph-east"}})
			s.furnished(s.destination, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class + "-west"}, Provisioner: cluster.Driver, Parameters: map[string]string{"clusterID": "ceph-west"}})
			before, there := s.state(s.source), s.names("destination")

			run(t, s.planArgs()...).expect(t, blocked, "StorageClass "+class+" does not exist on the destination", "--storage-class "+class+"=NAME",
				fmt.Sprintf("needs Secret %s/csi-east", s.source.namespace), fmt.Sprintf("spec.storage.secrets: {%s/csi-east: NAMESPACE/NAME}", s.source.namespace), "3 where its volume cannot be reached")
			r := run(t, s.asked(fmt.Sprintf(`  storage:
    classes: {%s: %[1]s-west}
    topology: [{key: %[2]s, as: %[2]s-of-west, values: {east-1: west-1}}]
    secrets: {%[3]s/csi-east: %[3]s/csi-west}
    volumeAttributes: {clusterID: {ceph-east: ceph-west}}
`, class, zone, s.source.namespace))...).expect(t, done, "other parameters than "+class+" (clusterID)", "has another content than")
			lacks(t, r, "canary-5d1")
			run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
			s.translated(class + "-west")
			run(t, s.args(way)...).expect(t, done)
			if way == "abort" {
				s.asBefore(before, there)
				return
			}
			s.ready(s.destination)
			s.unmarked()
			nothingLost(t, before)
			var left corev1.PersistentVolume
			if err := s.source.Get(t.Context(), client.ObjectKey{Name: s.source.namespace + "-data-web-0"}, &left); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the volume object of the source is left: %v", err)
			}
		})
	}
}

// translated checks volume, claim and set on the destination.
func (s *migration) translated(class string) {
	s.t.Helper()
	for _, name := range []string{"data-web-0", "data-web-1"} {
		var pv corev1.PersistentVolume
		var claim corev1.PersistentVolumeClaim
		if err := s.destination.Get(s.t.Context(), s.destination.key(name), &claim); err != nil {
			s.t.Fatal(err)
		}
		if err := s.destination.Get(s.t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, &pv); err != nil {
			s.t.Fatal(err)
		}
		same(s.t, "class of the claim", class, *claim.Spec.StorageClassName)
		same(s.t, "class of the volume", class, pv.Spec.StorageClassName)
		same(s.t, "attributes", map[string]string{"clusterID": "ceph-west", "pool": "fast"}, pv.Spec.CSI.VolumeAttributes)
		same(s.t, "Secret", corev1.SecretReference{Namespace: s.destination.namespace, Name: "csi-west"}, *pv.Spec.CSI.NodeStageSecretRef)
		same(s.t, "node affinity", corev1.NodeSelectorRequirement{Key: zone + "-of-west", Operator: corev1.NodeSelectorOpIn, Values: []string{"west-1"}},
			pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0])
		same(s.t, "handle", s.source.namespace+"-"+name, pv.Spec.CSI.VolumeHandle)
	}
	var set appsv1.StatefulSet
	s.read(s.destination, &set)
	same(s.t, "class of the claim template", class, *set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName)
}

// Static volumes without a class do not get the default class of the destination.
func TestMovesHandmadeVolumesWithoutAClass(t *testing.T) {
	inBothModes(t, options{replicas: 2, objects: func(s *migration) {
		for _, claim := range []string{"data-web-0", "data-web-1"} {
			s.furnished(s.source, handmade(s.source, claim, func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "" }))
		}
	}, set: oneClaim("")}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
		s.arrived(before)
		run(t, s.args("finalize")...).expect(t, done)
		proper(t, w, 1)
		s.settled(before)
	})
}

// A claim that was expanded keeps its size, although the template requests less.
func TestAnExpandedVolumeKeepsItsSize(t *testing.T) {
	inBothModes(t, options{replicas: 2, classOf: "by-hand-", objects: func(s *migration) {
		grows := true
		for _, on := range []*end{s.source, s.destination}[:map[mode]int{rebind: 1, reimport: 2}[s.mode]] {
			s.furnished(on, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "by-hand-" + s.source.namespace}, Provisioner: cluster.Driver, AllowVolumeExpansion: &grows})
		}
		s.furnished(s.source, handmade(s.source, "data-web-0", nil), handmade(s.source, "data-web-1", nil))
	}}, func(s *migration) {
		t := s.t
		var c corev1.PersistentVolumeClaim
		if err := s.source.Get(t.Context(), s.source.key("data-web-0"), &c); err != nil {
			t.Fatal(err)
		}
		bigger, was := resource.MustParse("3Gi"), c.DeepCopy()
		c.Spec.Resources.Requests[corev1.ResourceStorage] = bigger
		if err := s.source.Patch(t.Context(), &c, client.MergeFrom(was)); err != nil {
			t.Fatal(err)
		}
		run(t, s.planArgs()...).expect(t, blocked, "volumes-settled", "it asks for 3Gi and volume "+c.Spec.VolumeName+" has 2Gi")
		// The driver's resizer writes this when it is done.
		s.change(s.source, &corev1.PersistentVolume{}, c.Spec.VolumeName, `{"spec":{"capacity":{"storage":"3Gi"}}}`)
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
		if err := s.destination.Get(t.Context(), s.destination.key("data-web-0"), &c); err != nil {
			t.Fatal(err)
		}
		if got := c.Spec.Resources.Requests[corev1.ResourceStorage]; got.Cmp(bigger) != 0 || c.Status.Phase != corev1.ClaimBound {
			t.Errorf("the claim asks for %s and is %s, expected %s and Bound", got.String(), c.Status.Phase, bigger.String())
		}
	})
}

// A claim template whose data the application replicates starts empty. The claims of the source stay, for an
// abort.
func TestLeavesVolumesBehindWhereAsked(t *testing.T) {
	for n, way := range []string{"finalize", "abort"} {
		t.Run(way, func(t *testing.T) {
			inOneMode(t, n, options{replicas: 2}, func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				w := s.watched()
				run(t, s.planArgs("--empty", "logs")...).expect(t, failed, "claim template logs starts without data", "when: AfterGrow")
				gate := "  gates:\n  - name: caught-up\n    when: AfterGrow\n    timeout: 60s\n    job: {template: {spec: {containers: [{name: ask, image: ask}]}}}\n"
				run(t, s.asked(gate+"  empty: [nothing]\n")...).expect(t, failed, `no claim template "nothing"`)
				run(t, s.asked(gate+"  empty: [logs]\n")...).expect(t, done, "claim template logs: empty (", "claim template data: re")
				run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
				moved := s.state(s.destination)
				if moved.Volumes["data-web-1"].Handle != before.Volumes["data-web-1"].Handle || moved.Volumes["logs-web-1"].Handle == before.Volumes["logs-web-1"].Handle {
					t.Errorf("the destination has %v, the source had %v", moved.handles(), before.handles())
				}
				run(t, s.args(way)...).expect(t, done, "logs-web-0")
				proper(t, w, 1)
				s.unmarked()
				nothingLost(t, before)
				for _, claim := range []string{"logs-web-0", "logs-web-1"} {
					var c corev1.PersistentVolumeClaim
					if err := s.source.Get(t.Context(), s.source.key(claim), &c); err != nil || c.Status.Phase != corev1.ClaimBound {
						t.Errorf("claim %s of the source: %s, %v", claim, c.Status.Phase, err)
					}
				}
				if way == "abort" {
					same(t, "source", before, s.state(s.source))
					left := slices.DeleteFunc(s.names("destination"), func(name string) bool {
						return slices.Contains(there, name) || strings.HasPrefix(name, "PersistentVolume/pvc-")
					})
					same(t, "objects that an abort leaves", []string{"ConfigMap/stsmigrate-web", "ConfigMap/stsmigrate-web-journal", "PersistentVolumeClaim/logs-web-0", "PersistentVolumeClaim/logs-web-1"}, left)
				}
			})
		})
	}
}

// lacks checks that the output contains none of these words.
func lacks(t *testing.T, r result, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(r.stdout+r.stderr, word) {
			t.Errorf("%q is in the output of %s", word, r.args[0])
		}
	}
}

// storageObstacle is a state of the source's volumes that must be refused.
type storageObstacle struct {
	name   string
	modes  []mode
	volume func(*corev1.PersistentVolume) // changes the volume of data-web-1, which is a static one
	claim  string                         // a patch for the status of claim data-web-1
	flags  []string                       // for plan
	says   []string
}

func storageObstacles() []storageObstacle {
	both, apart := []mode{rebind, reimport}, []mode{reimport}
	source := func(s corev1.PersistentVolumeSource) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeSource = s }
	}
	return []storageObstacle{
		{name: "an expansion under way", modes: both, claim: `{"status":{"conditions":[{"type":"FileSystemResizePending","status":"True"}]}}`, says: []string{"volumes-settled", "is being expanded (FileSystemResizePending)"}},
		{name: "a change of attributes under way", modes: both, claim: `{"status":{"modifyVolumeStatus":{"targetVolumeAttributesClassName":"gold","status":"InProgress"}}}`, says: []string{"volumes-settled", "changed to VolumeAttributesClass gold"}},
		{name: "a hostPath", modes: apart, volume: source(corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/web"}}), says: []string{"volume-usable", "it is a hostPath", "--empty data"}},
		{name: "a local disk", modes: apart, volume: func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv/web"}}
			pv.Spec.NodeAffinity = nodeAffinity("kubernetes.io/os", "linux")
		}, says: []string{"volume-usable", "it is a local volume", "its data would have to be copied, which this program does not do"}},
		{name: "a disk of one machine", modes: apart, volume: func(pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = nodeAffinity("topology.example.com/node", "n1")
		}, flags: []string{"--ignore", "nodes-fit"}, says: []string{"volume-usable", "names a single machine"}},
		{name: "a driver that keeps its volumes in its cluster", modes: apart, volume: source(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.longhorn.io", VolumeHandle: "web-1"}}), says: []string{"volume-usable", "driver.longhorn.io keeps its volumes"}},
		{name: "a driver that nobody knows", modes: apart, volume: source(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: unknownDriver, VolumeHandle: "web-1"}}), says: []string{"csi-driver", unknownDriver, "kubectl --", " annotate csidriver " + unknownDriver}},
		{name: "one of Kubernetes' own", modes: apart, volume: source(corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2001-04.com.example:web"}}), says: []string{"volume-usable", "means something only inside its cluster"}},
	}
}

const unknownDriver = "unknown.stsmigrate.dev"

func nodeAffinity(key, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}
}

func TestRefusesVolumesThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	for _, c := range storageObstacles() {
		for _, m := range c.modes {
			t.Run(c.name+", "+string(m), func(t *testing.T) {
				t.Parallel()
				s := newMigration(t, m, options{replicas: 2, set: oneClaim(""), objects: func(s *migration) {
					if m == reimport {
						s.in(s.source, "topology.example.com/node", "n1")
						_ = s.destination.Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: unknownDriver}})
					}
					for _, claim := range []string{"data-web-0", "data-web-1"} {
						s.furnished(s.source, handmade(s.source, claim, func(pv *corev1.PersistentVolume) {
							pv.Spec.StorageClassName = ""
							if c.volume != nil && claim == "data-web-1" {
								c.volume(pv)
							}
						}))
					}
				}})
				if c.claim != "" {
					claim := &corev1.PersistentVolumeClaim{ObjectMeta: s.source.named("data-web-1")}
					if err := s.source.Status().Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(c.claim))); err != nil {
						t.Fatal(err)
					}
				}
				before := s.versions()
				run(t, s.planArgs(c.flags...)...).expect(t, blocked, c.says...)
				same(t, "objects", before, s.versions())
			})
		}
	}
}

// Claims of ordinals that were scaled down long ago would be deleted with the source set.
func TestRefusesClaimsThatWouldGoWithTheSet(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		var set appsv1.StatefulSet
		s.read(s.source, &set)
		old := newClaim("data-web-7", cluster.WaitClass)
		old.Namespace = s.source.namespace
		old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID}}
		s.create(s.source, &old)
		before := s.versions()
		r := run(t, s.planArgs()...).expect(t, blocked, "claims-left", "data-web-7", "would be deleted with the set", "-n "+s.source.namespace+" patch pvc data-web-7")
		same(t, "objects", before, s.versions())
		// The command in the remedy has the promised effect.
		_, patch, _ := strings.Cut(r.stderr, "-p '")
		patch, _, _ = strings.Cut(patch, "'")
		if err := s.source.Patch(t.Context(), &old, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		run(t, s.planArgs()...).expect(t, done)
	})
}

// When the kubelet reports late that it no longer uses a volume, the move resumes at once: the step timeout
// here is shorter than the interval of the periodic look.
func TestAVolumeInUseIsWaitedForUntilTheNodeLetsGo(t *testing.T) {
	inOneMode(t, 1, options{replicas: 1}, func(s *migration) {
		t := s.t
		var pod corev1.Pod
		if err := s.source.Get(t.Context(), s.source.key("web-0"), &pod); err != nil {
			t.Fatal(err)
		}
		disk := s.state(s.source).handles()["data-web-0"]
		uses := func(patch string) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
			if err := s.source.Status().Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"volumesInUse":`+patch+`}}`))); err != nil {
				t.Fatal(err)
			}
		}
		uses(fmt.Sprintf(`["kubernetes.io/csi/%s^%s"]`, cluster.Driver, disk))
		defer uses("null")
		s.planned()
		p := start(t, s.applyArgs("--step-timeout", "20s")...)
		p.until("Vacate", "is still in use on node "+pod.Spec.NodeName)
		uses("[]")
		p.end().expect(t, done, "moved: 1 ordinals", "is of a kind that is never attached")
	})
}
