package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// backend checks for signs that both clusters use one storage backend: the same driver, a class of the same
// provisioner and parameters, the Secrets that the driver needs. No API can prove that a handle means the
// same disk; these signs can refute it. A finding about a whole driver, class or Secret is reported once
// (seen).
func backend(ctx context.Context, i check.Inspection, pv *corev1.PersistentVolume, seen map[string]bool) ([]check.Finding, error) {
	first := func(what string) bool {
		was := seen[what]
		seen[what] = true
		return !was
	}
	var out []check.Finding
	add := func(found []check.Finding, err error) error {
		out = append(out, found...)
		return err
	}
	if class := pv.Spec.StorageClassName; class != "" && first("class "+class) {
		if err := add(sameClass(ctx, i, class)); err != nil {
			return nil, err
		}
	}
	if server := fileServer(pv); server != "" && first("server "+server) {
		if err := add(serverOutside(ctx, i, server)); err != nil {
			return nil, err
		}
	}
	for _, ref := range storage.Secrets(pv) {
		if first("secret " + ref.Namespace + "/" + ref.Name) {
			if err := add(secretThere(ctx, i, ref)); err != nil {
				return nil, err
			}
		}
	}
	if pv.Spec.CSI == nil {
		return out, nil
	}
	if driver := pv.Spec.CSI.Driver; first("driver " + driver) {
		if err := add(takes(ctx, i, pv)); err != nil {
			return nil, err
		}
	}
	if f, differ := otherCeph(i, pv); differ && first(f.Saw) {
		out = append(out, f)
	}
	return out, nil
}

// takes requires that the destination has the driver of a volume, and that its API server knows every field
// of the volume.
func takes(ctx context.Context, i check.Inspection, pv *corev1.PersistentVolume) ([]check.Finding, error) {
	out, err := installed(ctx, i, pv.Spec.CSI.Driver)
	if err != nil {
		return nil, err
	}
	kept, err := keeps(ctx, i, pv)
	return append(out, kept...), err
}

// otherCeph compares the two places in which a volume of Ceph has the id of its cluster. The handle can never
// be changed, and the driver uses the handle.
func otherCeph(i check.Inspection, pv *corev1.PersistentVolume) (f check.Finding, differ bool) {
	in := cephCluster(pv.Spec.CSI.VolumeHandle)
	to := storage.VolumeFrom(pv, corev1.ObjectReference{}, i.Plan.Storage).Spec.CSI.VolumeAttributes["clusterID"]
	if in == "" || to == "" || in == to || !strings.HasSuffix(pv.Spec.CSI.Driver, ".csi.ceph.com") {
		return f, false
	}
	return check.Finding{
		Level: check.Warn, Saw: fmt.Sprintf("its handle has the clusterID %s, and its attributes are to have %s there; the driver goes by the handle", in, to), Want: "a driver there that knows that the two are one Ceph cluster",
		Remedy: fmt.Sprintf("have clusterIDMapping {%s: %s} in the cluster-mapping.json of the destination's ceph-csi-config", in, to),
	}, true
}

// cephCluster parses the id of the cluster out of a handle of Ceph: version, length of the id, the id, and
// the rest, with "-" between them. It returns "" for handles of another form.
func cephCluster(handle string) string {
	parts := strings.SplitN(handle, "-", 3)
	if len(parts) < 3 {
		return ""
	}
	length, err := strconv.ParseUint(parts[1], 16, 16)
	if err != nil || len(parts[1]) != 4 || uint64(len(parts[2])) <= length || parts[2][length] != '-' {
		return ""
	}
	return parts[2][:length]
}

func installed(ctx context.Context, i check.Inspection, name string) ([]check.Finding, error) {
	driver := i.Plan.Storage.Driver(name)
	if !storage.SameDriver(name, driver) {
		return []check.Finding{{
			Saw: fmt.Sprintf("spec.storage.drivers maps CSI driver %s to %s, which is not known to be the same under another name", name, driver), Want: "one driver under two names (docs/storage/reimport.md has those that are known)",
			Remedy: "leave it out: the handles of another driver mean other disks",
		}}, nil
	}
	there, err := driverThere(ctx, i, driver)
	if err == nil && there == nil {
		return []check.Finding{{Saw: "CSI driver " + driver + " is not installed on the destination", Want: "the same driver on the same backend", Remedy: "install it there"}}, nil
	}
	return nil, err
}

// keeps requires that the destination knows the fields of a volume that this program does not know: otherwise
// the volume would be refused when its ordinal is down.
func keeps(ctx context.Context, i check.Inspection, pv *corev1.PersistentVolume) ([]check.Finding, error) {
	whole, err := writes.Read(ctx, i.On[plans.Source], pv)
	if err != nil || len(whole.Unknown()) == 0 {
		return nil, client.IgnoreNotFound(err) // gone since; another check reports it
	}
	next := storage.VolumeFrom(pv, storage.RefTo(i.Plan.Destination.Namespace, pv.Name+"-dry-run", ""), i.Plan.Storage)
	next.Name += "-dry-run"
	plans.Stamp{Plan: i.Plan.ID}.Put(next)
	err = whole.Create(ctx, i.On[plans.Destination], next, client.DryRunAll)
	if !check.Refused(err) {
		return nil, err
	}
	return []check.Finding{{
		Saw: "it has the fields " + strings.Join(whole.Unknown(), ", ") + ", and the destination refuses such a volume (dry run): " + err.Error(), Want: "a destination that keeps them",
		Remedy: "upgrade the destination cluster", Passing: answers.MayPass(err),
	}}, nil
}

// driverThere reads the CSIDriver of the destination; nil where it is not installed.
func driverThere(ctx context.Context, i check.Inspection, name string) (*storagev1.CSIDriver, error) {
	return check.Once(i, driverKey(name), func() (*storagev1.CSIDriver, error) {
		var d storagev1.CSIDriver
		err := i.On[plans.Destination].Get(ctx, client.ObjectKey{Name: name}, &d)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return &d, err
	})
}

// sameClass compares the class of a volume with the class that it maps to on the destination. A class that
// the user has mapped may have other parameters, such as another name for the same pool, but never another
// provisioner.
func sameClass(ctx context.Context, i check.Inspection, name string) ([]check.Finding, error) {
	to := i.Plan.Storage.Class(name)
	var a, b storagev1.StorageClass
	if err := i.On[plans.Source].Get(ctx, client.ObjectKey{Name: name}, &a); err != nil {
		return nil, client.IgnoreNotFound(err) // nothing to compare with
	}
	err := i.On[plans.Destination].Get(ctx, client.ObjectKey{Name: to}, &b)
	if apierrors.IsNotFound(err) {
		return []check.Finding{{
			Saw: "StorageClass " + to + " does not exist on the destination", Want: "a class of that name on the same backend",
			Remedy: "create it there, or say what it is called there: --storage-class " + name + "=NAME",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	params := differentKeys(a.Parameters, b.Parameters)
	a.Provisioner = i.Plan.Storage.Driver(storage.Provisioner(a.Provisioner))
	known := storage.Known(&corev1.CSIPersistentVolumeSource{Driver: a.Provisioner})
	telling := known.Handles != storage.PortableHandles || slices.ContainsFunc(params, func(p string) bool { return slices.Contains(known.Backend, p) })
	switch {
	case a.Provisioner != storage.Provisioner(b.Provisioner):
		return []check.Finding{{
			Saw: fmt.Sprintf("StorageClass %s has provisioner %s on the destination, and %s has another one here", to, b.Provisioner, name), Want: "one and the same storage backend",
			Remedy: "volumes can be re-imported only from a backend that both clusters share",
		}}, nil
	case len(params) > 0 && to == name && !telling:
		return []check.Finding{{
			Level: check.Warn, Saw: fmt.Sprintf("StorageClass %s has other parameters on the destination (%s)", name, strings.Join(params, ", ")), Want: "the same parameters",
			Remedy: "the volumes stay as they are; those that are made there later will be as that class says",
		}}, nil
	case len(params) > 0 && to != name:
		return []check.Finding{{
			Level: check.Warn, Saw: fmt.Sprintf("StorageClass %s of the destination has other parameters than %s (%s)", to, name, strings.Join(params, ", ")), Want: "one and the same storage backend",
			Remedy: "make sure that they mean the same backend; what a volume has of them is mapped by spec.storage.volumeAttributes",
		}}, nil
	case len(params) > 0:
		return []check.Finding{{
			Saw: fmt.Sprintf("StorageClass %s has other parameters on the destination (%s)", name, strings.Join(params, ", ")), Want: "one and the same storage backend",
			Remedy: "volumes can be re-imported only from a backend that both clusters share; if it is the same under other names, map the class (--storage-class) and spec.storage.volumeAttributes",
		}}, nil
	}
	return nil, nil
}

// differentKeys returns the keys with different values. It never returns the values: some drivers keep
// credentials there.
func differentKeys(a, b map[string]string) []string {
	out := map[string]bool{}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			out[k] = true
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out[k] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// secretThere requires the Secret that the driver will be given. Its content is compared and never printed.
func secretThere(ctx context.Context, i check.Inspection, ref corev1.SecretReference) ([]check.Finding, error) {
	to := storage.SecretRef(ref, i.Plan.Storage)
	var here, there corev1.Secret
	err := i.On[plans.Destination].Get(ctx, client.ObjectKey{Namespace: to.Namespace, Name: to.Name}, &there)
	switch {
	case apierrors.IsNotFound(err):
		return []check.Finding{{
			Saw: fmt.Sprintf("its driver needs Secret %s/%s, which the destination does not have", to.Namespace, to.Name), Want: "the Secret on both sides",
			Remedy: fmt.Sprintf("create it there, or say what it is called there: spec.storage.secrets: {%s/%s: NAMESPACE/NAME}", ref.Namespace, ref.Name),
		}}, nil
	case apierrors.IsForbidden(err):
		return []check.Finding{{
			Level: check.Warn, Saw: fmt.Sprintf("its driver needs Secret %s/%s, and you may not look whether the destination has it", to.Namespace, to.Name), Want: "the Secret on both sides",
			Remedy: "ask a user who may read it",
		}}, nil
	case err != nil:
		return nil, err
	}
	err = i.On[plans.Source].Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &here)
	if err == nil && !equality.Semantic.DeepEqual(here.Data, there.Data) {
		return []check.Finding{{
			Level: check.Warn, Saw: fmt.Sprintf("Secret %s/%s of the destination has another content than %s/%s", to.Namespace, to.Name, ref.Namespace, ref.Name), Want: "credentials for the same backend",
			Remedy: "make sure that both let the driver reach the same volumes",
		}}, nil
	}
	return nil, client.IgnoreNotFound(check.IgnoreForbidden(err))
}

// CsiDriver requires volume handles that mean the same disk in the other cluster.
func CsiDriver(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Plan.OneCluster() || !i.Plan.HasVolumes() {
		return nil, nil
	}
	here, err := On(ctx, i, plans.Source)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	seen := map[string]bool{}
	wanted, err := wanted(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, v := range wanted {
		pv := here.ByName[v.Name]
		if pv == nil || pv.Spec.CSI == nil || seen[pv.Spec.CSI.Driver] {
			continue
		}
		seen[pv.Spec.CSI.Driver] = true
		f, err := driverKnown(ctx, i, pv.Spec.CSI)
		if err != nil {
			return nil, err
		}
		out = append(out, f...)
	}
	return out, nil
}

func driverKnown(ctx context.Context, i check.Inspection, volume *corev1.CSIPersistentVolumeSource) ([]check.Finding, error) {
	if storage.Known(volume).Handles != storage.UnknownHandles {
		return nil, nil // the check volume-usable reports what cannot be moved
	}
	driver := i.Plan.Storage.Driver(volume.Driver)
	there, err := driverThere(ctx, i, driver)
	if err != nil || there == nil || there.Annotations[storage.PortableAnnotation] == "true" {
		return nil, err // a driver that is not installed is reported already
	}
	return []check.Finding{{
		Object: "CSI driver " + driver, Saw: "it is not known whether its volume handles mean the same disk in both clusters", Want: "handles that do, on a backend that both share",
		Remedy: "ask its documentation; then let an administrator say so once, or make the plan with --ignore csi-driver\n" + i.Kubectl(plans.Destination) + " annotate csidriver " + driver + " " + storage.PortableAnnotation + "=true   # on the destination",
	}}, nil
}

// driverKey is the key of check.Once for a CSIDriver of the destination.
type driverKey string
