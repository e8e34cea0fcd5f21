package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/expanded"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/internal/preflight/trials"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// row is one entry of the catalogue. A check never writes; it only sends requests that the API server tries
// out (dry run).
type row struct {
	group, name string
	// about is the state that the check requires; remedy is the general advice. A finding is more exact than
	// either.
	about, remedy string
	// worst is the worst level of its findings. A check that only warns is ignorable, and does not run
	// between waves.
	worst check.Level
	// ignorable reports whether the user may continue in spite of a finding: the check only warns, or it is
	// about a state that would make a pod wait and could not harm it.
	ignorable bool
	// wave is how often the check runs again between waves: for a state that may have changed since, and that
	// the engine's looks would find too late or not at all.
	wave again
	// back is before which waves of an abort the check runs, and oneWay is why it runs before none: every check that bars
	// the way there has one of the two.
	back   back
	oneWay string
	// accepted reports whether the user may continue an abort in spite of a finding, although not a move: the pod would
	// wait for what is missing, with its ordinal down.
	accepted bool
	// alone reports that the check can be asked of a set that has no destination: it is about the source, or about whatever
	// other place.
	alone bool
	run   func(context.Context, check.Inspection) ([]check.Finding, error)
}

// back is before which waves of an abort a check runs.
type back int

const (
	notBack   back = iota
	healthy        // before a wave with an ordinal that serves: it is about what lets it come up again (S18)
	everyWave      // before every wave: what it finds would stop the abort anyway
)

// again is how often a check runs again between waves.
type again int

const (
	never    again = iota
	standing       // before a wave, unless it passed within standingValidity: it is not about single ordinals
	always         // before every wave: it is about the ordinals of the wave, or about what they use up
)

// notMigrating is asked before the others, which would only stumble over a move that is under way.
const notMigrating = "not-migrating"

// catalogue returns every check, in the order of the report.
func catalogue() []row { return slices.Concat(accessChecks(), lookingChecks()) }

// lookingChecks returns the checks that need the rights which accessChecks verify.
func lookingChecks() []row {
	return slices.Concat(consentChecks(), versionChecks(), setChecks(), ownershipChecks(), storageChecks(), afterwardsChecks(), budgetChecks(), networkChecks(), dependencyChecks(), trialChecks(), expandedChecks(), capacityChecks())
}

func accessChecks() []row {
	return grouped("Access", []row{
		{
			name: "permissions", worst: check.Fail, wave: standing, back: everyWave, run: access.Permissions,
			about:  "you have the rights on both sides that move, abort and finalize need",
			remedy: "ask for the Roles that `stsmigrate rbac SET --user NAME` prints, or for the rules it names",
		},
		{
			name: "connection", worst: check.Warn, ignorable: true, run: access.Connection,
			about:  "the API servers are spoken to over TLS, and prove who they are",
			remedy: "put the cluster's certificate authority into the kubeconfig",
		},
		{
			name: "one-cluster", worst: check.Fail, wave: standing, back: everyWave, run: access.OneCluster,
			about:  "two contexts of what counts as one cluster, by the UID of its namespace kube-system, reach one cluster",
			remedy: "name contexts of one cluster, or move to one that was not made from a backup of the other one's etcd",
		},
	})
}

func grouped(group string, checks []row) []row {
	for i := range checks {
		checks[i].group = group
	}
	return checks
}

func consentChecks() []row {
	return grouped("Access", []row{{
		name: "consent", worst: check.Fail, wave: always, back: everyWave, run: access.Consent,
		about:  "every namespace that is written to agrees, where an orchestrator carries the plan out (`apply --detach`)",
		remedy: "`stsmigrate consent` prints the ConfigMap for the owner of the namespace",
	}})
}

func versionChecks() []row {
	return grouped("Versions", []row{
		{
			name: "api-version", worst: check.Fail, wave: standing, run: ApiVersion,
			oneWay: "the source ran these pods, and pod-accepted tries one",
			about:  "the API servers are new enough, not far apart, and not older than when the plan was made",
			remedy: "upgrade the destination cluster",
		},
		{
			name: "ordinals-kept", worst: check.Fail, wave: standing, run: OrdinalsKept,
			oneWay: "the source takes its ordinals back at its end, which needs no field that it did not have",
			about:  "the destination keeps spec.ordinals (tried with a dry run)",
			remedy: "upgrade the destination cluster",
		},
	})
}

func setChecks() []row {
	return grouped("Set", []row{
		{
			name: "plan-current", worst: check.Fail, run: PlanCurrent,
			oneWay: "it is about the start of a plan",
			about:  "sets and budget are as they were when the plan was made, and its patches change what it says",
			remedy: "make a new plan",
		},
		{
			name: "name-free", worst: check.Fail, run: NameFree,
			oneWay: "it is about the start of a plan",
			about:  "no other plan of this name is under way",
			remedy: "finish that plan, or give this one another --name",
		},
		{
			name: notMigrating, worst: check.Fail, alone: true, run: NotMigrating,
			oneWay: "the looks ask both sets for the stamp of the plan",
			about:  "no other plan is at work on the sets",
			remedy: "finish that plan, or abort it",
		},
		{
			name: "source-settled", worst: check.Fail, alone: true, run: SourceSettled,
			oneWay: "the looks wait for rolling updates and ordinals of both sets (S2, S13)",
			about:  "every ordinal of the source is available, with one revision and no partition",
			remedy: "repair the pod, or let the update finish",
		},
		{
			name: "selector", worst: check.Fail, alone: true, run: pods.Selector,
			oneWay: "it is about the numbers of the budgets, which are the plan's by then",
			about:  "the set's selector selects no pods but its own, on either side",
			remedy: "move or relabel the other workload's pods",
		},
		{
			name: "destination-compatible", worst: check.Fail, wave: standing, run: DestinationCompatible,
			oneWay: "the looks compare the templates of both sets before every wave, and the other fields cannot be changed",
			about:  "a destination set that is there has the source's selector, template and claims",
			remedy: "make them equal, or choose another destination",
		},
		{
			name: "destination-free", worst: check.Fail, wave: always, back: healthy, accepted: true, run: DestinationFree,
			about:  "the names of pods and claims are free on the destination",
			remedy: "choose another place if what is there is in use; delete what has ended or is left over, if its data is not needed",
		},
	})
}

func storageChecks() []row {
	return grouped("Storage", []row{
		{
			name: "claims-bound", worst: check.Fail, alone: true, run: ClaimsBound,
			oneWay: "the looks read the bindings of both sides",
			about:  "every claim and its volume name each other",
			remedy: "repair the storage of this ordinal",
		},
		{
			name: "claims-unshared", worst: check.Fail, alone: true, run: ClaimsUnshared,
			oneWay: "the looks ask who mounts the claims, and what keeps them",
			about:  "no other pod mounts a claim of the set, and no snapshot, replication or clone keeps one",
			remedy: "wait for that pod, or let its owner end it",
		},
		{
			name: "claims-awaited", worst: check.Fail, run: pods.ClaimsAwaited,
			oneWay: "the looks wait for such pods on both ways, with the ordinal up (S20)",
			about:  "no pod on the destination waits for a claim that the set will have there, and no workload of either side makes one that would",
			remedy: "suspend the CronJob, scale the Deployment to 0, or delete the pod",
		},
		{
			name: "claims-left", worst: check.Fail, alone: true, run: volumes.ClaimsLeft,
			oneWay: "it is about the end: the look that deletes a set asks for its claims",
			about:  "no claim of an ordinal that is gone would be deleted with the source set",
			remedy: "take the owner reference off the claim",
		},
		{
			name: "volumes-settled", worst: check.Fail, wave: always, back: healthy, accepted: true, alone: true, run: volumes.Settled,
			about:  "no volume is being expanded or changed, and each claim agrees with its volume",
			remedy: "wait for the change to finish, or repair the binding",
		},
		{
			name: "volume-usable", worst: check.Fail, wave: always, alone: true, run: volumes.VolumeUsable,
			oneWay: "the looks read the volume objects of both sides, and the source has kept its own",
			about:  "each volume means the same disk on the destination, and no other volume object means it",
			remedy: "install the driver, the class or the Secret there; data on volumes of one cluster has to be copied",
		},
		{
			name: "csi-driver", worst: check.Fail, ignorable: true, run: volumes.CsiDriver,
			oneWay: "the handles have meant the same disks on the way there",
			about:  "the volume handles of the CSI driver are known to mean the same disk in both clusters",
			remedy: "have an administrator annotate the CSIDriver of the destination, or --ignore csi-driver",
		},
		{
			name: "volumes-accepted", worst: check.Fail, wave: standing, back: everyWave, run: volumes.Accepted,
			about:  "the clusters let the very volumes be made and handed over (tried with dry runs)",
			remedy: "`stsmigrate consent --cluster` prints what the cluster has to agree to",
		},
		{
			name: "snapshots", worst: check.Warn, ignorable: true, alone: true, run: volumes.Snapshots,
			about:  "every claim has a VolumeSnapshot of the last 24 hours, where the source cluster makes such",
			remedy: "make snapshots, or see that there is another backup",
		},
		{
			name: "shared-volumes", worst: check.Fail, wave: standing, back: everyWave, alone: true, run: volumes.SharedVolumes,
			about:  "claims that the pod template names can be mounted on both sides at once, or are there on the destination",
			remedy: "make the claim on the destination by hand",
		},
	})
}

// afterwardsChecks are about the volumes on the destination after the move.
func afterwardsChecks() []row {
	return grouped("Storage", []row{
		{
			name: "disk-owner", worst: check.Fail, ignorable: true, run: volumes.DiskOwner,
			oneWay: "it is about the time after the move",
			about:  "the disks do not go when the old cluster is deleted",
			remedy: "keep the old cluster until they are its own no longer",
		},
		{
			name: "never-attached", worst: check.Warn, ignorable: true, run: volumes.NeverAttached,
			about:  "between clusters, the driver attaches disks that are for one node at a time",
			remedy: "read what the driver does to a disk that is mounted in two clusters",
		},
		{
			name: "namespace-kept", worst: check.Warn, ignorable: true, run: volumes.NamespaceKept,
			about:  "within one cluster, neither the volumes nor their backups need the old namespace",
			remedy: "keep the namespace, or recreate what would be deleted with it",
		},
		{
			name: "file-owners", worst: check.Warn, ignorable: true, run: volumes.FileOwners,
			about:  "on OpenShift, the namespaces give pods the same user, groups and SELinux label",
			remedy: "annotate the destination's namespace as the source's is, before any pod runs there",
		},
	})
}

func budgetChecks() []row {
	return grouped("Budget", []row{
		{
			name: "budget-alone", worst: check.Fail, wave: standing, back: healthy, accepted: true, alone: true, run: BudgetAlone,
			about:  "at most one PodDisruptionBudget of each side is over pods of the set, over all of them and no others; the name of one that the plan makes is free",
			remedy: "narrow its selector, or delete it for the time of the move",
		},
		{
			name: "ready-for-a-while", worst: check.Warn, ignorable: true, alone: true, run: pods.ReadyForAWhile,
			about:  "every pod has been Ready for " + pods.Minutes(pods.SettleTime),
			remedy: "wait, if the application needs time to settle",
		},
		{
			name: "drains", worst: check.Warn, ignorable: true, alone: true, run: pods.Drains,
			about:  "no node is being drained",
			remedy: "let the drain finish, or uncordon the node",
		},
		{
			name: "gates", worst: check.Warn, ignorable: true, alone: true, run: pods.Gates,
			about:  "a replicated database has gates before an ordinal leaves and after it has arrived",
			remedy: "let gates ask it (docs/gates.md)",
		},
	})
}

func networkChecks() []row {
	return grouped("Network", []row{
		{
			name: "names", worst: check.Fail, wave: standing, back: everyWave, run: Names,
			about:  "what keeps the pods' names resolvable is there, or can be made, on both sides",
			remedy: "make room for it, bring back what is gone, or make the plan with --names none",
		},
		{
			name: "service", worst: check.Warn, ignorable: true, run: pods.Service,
			about:  "the governing Service is headless, and publishes not-ready pods and the IP families alike on both sides",
			remedy: "make the two Services equal",
		},
		{
			name: "clients", worst: check.Fail, ignorable: true, run: Clients,
			oneWay: "the bridge serves both ways alike, and the source served them before",
			about:  "every Service that selects the pods can be kept served until the end, and has an equal on the destination",
			remedy: "let the names be bridged, make the Service on the destination, or switch its clients",
		},
		{
			name: "old-names", worst: check.Warn, ignorable: true, run: expanded.OldNames,
			about:  "no text of the pods, their ConfigMaps and Secrets has a name that the move ends: of the old namespace, or of a Service that only the source has",
			remedy: "change the names after the move, or finalize with --keep-names",
		},
	})
}

func dependencyChecks() []row {
	return grouped("Dependencies", []row{
		{
			name: "namespace", worst: check.Fail, run: pods.Namespace,
			oneWay: "a namespace that is being deleted refuses the pod and the claims that are tried",
			about:  "the destination's namespace exists and stays",
			remedy: "create it",
		},
		{
			name: "dependencies", worst: check.Fail, wave: standing, back: everyWave, run: pods.Dependencies,
			about:  "each object that the pods name is absent on the destination, or equal; a generated object exists there; what was copied is still there",
			remedy: "make them equal, or name another one; let the generator of a generated object make it there",
		},
		{
			name: "rbac", worst: check.Warn, ignorable: true, run: pods.Rbac,
			about:  "the roles bound to the service account are bound on the destination too",
			remedy: "bind them there; they are not copied",
		},
		{
			name: "classes", worst: check.Fail, back: healthy, accepted: true, run: pods.Classes,
			about:  "the priority, runtime, storage and device classes and the drivers that the pods and their new claims name exist on the destination",
			remedy: "create them there, or name others",
		},
		{
			name: "images", worst: check.Warn, ignorable: true, run: pods.Images,
			about:  "the destination has the images, or pull secrets for their registries",
			remedy: "make sure that its nodes can pull them",
		},
		{
			name: "pod-accepted", worst: check.Fail, wave: standing, back: healthy, accepted: true, run: pods.PodAccepted,
			about:  "the destination lets the very pod in, as one of the set: quota, LimitRange, Pod Security (tried with a dry run)",
			remedy: "make room, or change the namespace's limits or the pods",
		},
		{
			name: "claims-accepted", worst: check.Fail, wave: standing, back: healthy, accepted: true, run: pods.ClaimsAccepted,
			about:  "the destination lets the very claims in, unchanged in what binds them (tried with a dry run)",
			remedy: "make room, or change the namespace's limits",
		},
		{
			name: "quota", worst: check.Fail, wave: always, back: healthy, accepted: true, run: pods.Quota,
			about:  "the quotas of the destination have room for all ordinals",
			remedy: "raise the quota",
		},
		{
			name: "admission", worst: check.Fail, wave: standing, back: healthy, accepted: true, run: Admission,
			about:  "webhooks and policies of the destination accept the set unchanged (tried with a dry run)",
			remedy: "remove what they object to",
		},
	})
}

// trialChecks send what no check before them has tried.
func trialChecks() []row {
	return grouped("Dependencies", []row{
		{
			name: "writes-accepted", worst: check.Fail, wave: always, back: healthy, accepted: true, run: trials.WritesAccepted,
			about:  "both sides let through whatever the ordinals need on their way: claims, volumes, sets and budgets are changed, claims deleted, names and copies made (tried with dry runs)",
			remedy: "let the owner of the rule make an exception",
		},
		{
			name: "sizes-accepted", worst: check.Fail, ignorable: true, wave: standing, back: healthy, run: trials.SizesAccepted,
			about:  "both sides let the sets have every size that they get on the way, the source down to none, and the pods go (tried with dry runs)",
			remedy: "let the owner of the rule make an exception, or --ignore sizes-accepted where the rule is about single steps",
		},
		{
			name: "returns-accepted", worst: check.Fail, ignorable: true, run: trials.ReturnsAccepted,
			oneWay: "it is about the way back: pod-accepted, claims-accepted and writes-accepted ask before each wave of it",
			about:  "the source lets its pods and claims in again, and whatever else an abort needs (tried with dry runs)",
			remedy: "change what the source demands, or --ignore returns-accepted and do without a way back until then",
		},
		{
			name: "ends-accepted", worst: check.Fail, ignorable: true, back: healthy, run: trials.EndsAccepted,
			about:  "both sides let through what finalize and abort end with: the emptied set, second volumes and names are deleted, marks are taken off (tried with dry runs)",
			remedy: "let the owner of the rule make an exception, or --ignore ends-accepted where it will be gone by then",
		},
	})
}

// expandedChecks are about what the namespace, the cluster, admission and the names make of the pods on the two sides.
func expandedChecks() []row {
	return grouped("Dependencies", []row{
		{
			name: "same-directory", worst: check.Fail, ignorable: true, alone: true, run: expanded.SameDirectory,
			oneWay: "on the way back the pods find the directories that they had",
			about:  "the pods find the same directory of their volume on both sides, whatever their namespace is called",
			remedy: "write the old directory into the pod template with --patch",
		},
		{
			name: "locks", worst: check.Fail, ignorable: true, alone: true, run: expanded.Locks,
			oneWay: "it is about the time when ordinals are on two sides, which an abort ends",
			about:  "the members of the set do not agree on a leader, or find one another, through the API of their own namespace",
			remedy: "leave the lock in the old namespace until the end (--patch), or --ignore locks where the application keeps two sides together",
		},
		{
			name: "same-pod", worst: check.Fail, ignorable: true, run: expanded.SamePod,
			oneWay: "the source ran these pods",
			about:  "the pods are the same on both sides but for what the plan changes: what they are told of their namespace, what admission adds (tried with a dry run), what a node has, the length of their host names",
			remedy: "make the namespaces alike, or write what shall stay into the pod template with --patch",
		},
		{
			name: "identities", worst: check.Warn, ignorable: true, run: expanded.Identities,
			about:  "no program outside of the cluster knows the pods by their account, its namespace and the cluster's tokens",
			remedy: "let clouds, Vault and others trust the account of the new namespace before the move",
		},
		{
			name: "policies-of-namespace", worst: check.Warn, ignorable: true, run: expanded.PoliciesOfNamespace,
			about:  "NetworkPolicies let members on two sides reach one another, and policies and monitors of the pods have an equal on the destination",
			remedy: "make them there before the move; they are not copied",
		},
		{
			name: "later-ordinals", worst: check.Warn, ignorable: true, run: expanded.LaterOrdinals,
			about:  "the destination has what the claim templates name for ordinals that are made later",
			remedy: "make it there before the set is scaled up, or name another one with --patch",
		},
	})
}

func capacityChecks() []row {
	return grouped("Capacity", []row{
		{
			name: "nodes-fit", worst: check.Fail, ignorable: true, wave: always, back: healthy, run: pods.NodesFit,
			about:  "the scheduler finds a node for each pod that is to come, in the order of the plan: taints, affinity, room, ports, spread, volumes",
			remedy: "add nodes or free some, or --ignore nodes-fit where nodes come on demand",
		},
		{
			name: "place-proven", worst: check.Fail, ignorable: true, run: trials.PlaceProven,
			oneWay: "the source ran these pods",
			about:  "the placeholders of the plan, if it has any, prove all of the pods: they have no init containers, no devices, and no NetworkPolicy is about their labels; what must be reached can be asked",
			remedy: "see to it yourself that what no placeholder proves works there, then --ignore place-proven",
		},
	})
}

// Ignorable returns the names sorted and without repetition, as a plan keeps them. It returns an error for a
// name that is not a check's, and for a check that the user may not ignore.
func Ignorable(names []string) ([]string, error) {
	may := map[string]bool{}
	var list []string
	for _, c := range catalogue() {
		may[c.name] = c.ignorable
		if c.ignorable {
			list = append(list, c.name)
		}
	}
	for _, n := range names {
		ignorable, known := may[n]
		switch {
		case !known:
			return nil, fmt.Errorf("there is no check %q; those that can be ignored: %s", n, strings.Join(list, ", "))
		case !ignorable:
			return nil, fmt.Errorf("check %s cannot be ignored: what it looks for would break the move; those that can: %s", n, strings.Join(list, ", "))
		}
	}
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Acceptable returns the checks that the user may ignore before a wave of an abort.
func Acceptable() []string {
	var out []string
	for _, c := range catalogue() {
		if c.ignorable && c.often(plans.Abort) != never || c.accepted {
			out = append(out, c.name)
		}
	}
	return out
}

// ownershipChecks are about the other writers of what a move writes. Another writer would revert the write,
// and a pod would run on two sides (S1).
func ownershipChecks() []row {
	return grouped("Ownership", []row{
		{
			name: "owner", worst: check.Fail, wave: standing, back: healthy, alone: true, run: owners.Owner,
			about:  "no operator owns a set",
			remedy: "pause the operator for this set, or use its own way to move",
		},
		{
			name: "autoscaler", worst: check.Fail, wave: standing, back: healthy, alone: true, run: owners.Autoscaler,
			about:  "no HorizontalPodAutoscaler scales the set, on either side",
			remedy: "save it and delete it for the time of the move",
		},
		{
			name: "keda", worst: check.Fail, wave: standing, back: healthy, alone: true, run: owners.Keda,
			about:  "no ScaledObject of KEDA scales the set, or it is paused",
			remedy: "pause it: annotation autoscaling.keda.sh/paused",
		},
		{
			name: "vertical-autoscaler", worst: check.Warn, ignorable: true, alone: true, run: owners.VerticalAutoscaler,
			about:  "no VerticalPodAutoscaler evicts pods of the set",
			remedy: "set its updateMode to Off for the time of the move",
		},
		{
			name: "argocd", worst: check.Fail, wave: standing, back: healthy, alone: true, run: owners.Argocd,
			about:  "no Application of Argo CD syncs sets or budgets by itself, or it leaves alone what moves; none prunes the copies",
			remedy: "turn automated sync off, or its prune, together with ignoreDifferences and RespectIgnoreDifferences=true",
		},
		{
			name: "flux", worst: check.Fail, wave: standing, back: healthy, alone: true, run: owners.Flux,
			about:  "no Kustomization or HelmRelease of Flux applies sets or budgets, or it is suspended",
			remedy: "flux suspend, or annotation kustomize.toolkit.fluxcd.io/reconcile: disabled",
		},
		{
			name: "writers-unseen", worst: check.Fail, ignorable: true, wave: standing, back: healthy, alone: true, run: owners.WritersUnseen,
			about:  "the tools that mark sets and budgets as theirs can be read",
			remedy: "see to it that it is stopped, then --ignore writers-unseen",
		},
		{
			name: "helm", worst: check.Warn, ignorable: true, alone: true, run: owners.Helm,
			about:  "no Helm release has the set",
			remedy: "no helm upgrade or rollback of it meanwhile; after `finalize` the objects change hands, as that prints",
		},
		{
			name: "handover", worst: check.Warn, ignorable: true, run: owners.Handover,
			about:  "no tool keeps a manifest by which it would make the source set again after the end of the move",
			remedy: "give its manifest the new namespace and cluster, after `finalize` and before it applies anything again",
		},
		{
			name: "restarters", worst: check.Warn, ignorable: true, alone: true, run: owners.Restarters,
			about:  "no program restarts the pods by itself",
			remedy: "stop it for the time of the move, or let the move wait for its restarts",
		},
		{
			name: "field-managers", worst: check.Fail, ignorable: true, alone: true, run: owners.FieldManagers,
			oneWay: "it is about the time before the move; the checks of the tools are asked",
			about:  "replicas and ordinals were last written by the tools of users, or by writers that the checks above cover",
			remedy: "stop what writes them",
		},
	})
}
