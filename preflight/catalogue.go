package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// check is one entry of the catalogue. It never writes, except for requests that the
// API server only tries out (dry run).
type check struct {
	group, name string
	// about is what the check wants; remedy what to do in general. A finding is more
	// exact than either.
	about, remedy string
	// worst is the worst level that a finding of it has.
	worst Level
	// ignorable says that a person may go on in spite of it: a check that only warns,
	// or one of what would make a pod wait and could not harm it.
	ignorable bool
	// wave says that it is asked again before every wave: what may have changed
	// since, and what the looks of the engine would find too late or not at all.
	wave bool
	// back says that it is asked before every wave of the way back, too.
	back bool
	run  func(context.Context, inspection) ([]Finding, error)
}

// catalogue is every check, in the order of the report.
func catalogue() []check { return slices.Concat(accessChecks(), lookingChecks()) }

// lookingChecks are those that need the rights which accessChecks ask for.
func lookingChecks() []check {
	return slices.Concat(consentChecks(), versionChecks(), setChecks(), ownershipChecks(), storageChecks(), afterwardsChecks(), budgetChecks(), networkChecks(), dependencyChecks(), capacityChecks())
}

func accessChecks() []check {
	return grouped("Access", []check{
		{
			name: "permissions", worst: Fail, wave: true, back: true, run: permissions,
			about:  "you may do on both sides what the move, its way back and its end need",
			remedy: "ask for a Role with the verbs it names",
		},
		{
			name: "connection", worst: Warn, ignorable: true, run: connectionVerified,
			about:  "the API servers are spoken to over TLS, and prove who they are",
			remedy: "put the cluster's certificate authority into the kubeconfig",
		},
	})
}

func grouped(group string, checks []check) []check {
	for i := range checks {
		checks[i].group = group
	}
	return checks
}

func consentChecks() []check {
	return grouped("Access", []check{{
		name: "consent", worst: Fail, wave: true, back: true, run: consented,
		about:  "every namespace that is written to agrees, where an orchestrator carries the plan out (`apply --detach`)",
		remedy: "`stsmigrate consent` prints the ConfigMap for whoever is responsible for the namespace",
	}})
}

func versionChecks() []check {
	return grouped("Versions", []check{
		{
			name: "api-version", worst: Fail, wave: true, run: apiVersion,
			about:  "the API servers are new enough, not far apart, and not older than when the plan was made",
			remedy: "upgrade the destination cluster",
		},
		{
			name: "ordinals-kept", worst: Fail, wave: true, run: ordinalsKept,
			about:  "the destination keeps spec.ordinals (tried with a dry run)",
			remedy: "upgrade the destination cluster",
		},
	})
}

func setChecks() []check {
	return grouped("Set", []check{
		{
			name: "plan-current", worst: Fail, run: unchanged,
			about:  "sets and budget are as they were when the plan was made, and its patches change what it says",
			remedy: "make a new plan",
		},
		{
			name: "name-free", worst: Fail, run: nameFree,
			about:  "no other plan of this name is under way",
			remedy: "finish that plan, or give this one another --name",
		},
		{
			name: "not-migrating", worst: Fail, run: unmarked,
			about:  "no other plan is at work on the sets",
			remedy: "finish that plan, or walk it back",
		},
		{
			name: "source-settled", worst: Fail, run: sourceSettled,
			about:  "every ordinal of the source is available, with one revision and no partition",
			remedy: "repair the pod, or let the update finish",
		},
		{
			name: "selector", worst: Fail, run: selectsOwn,
			about:  "the set's selector selects no pods but its own, on either side",
			remedy: "move or relabel the other workload's pods",
		},
		{
			name: "destination-compatible", worst: Fail, wave: true, run: compatible,
			about:  "a destination set that is there has the source's selector, template and claims",
			remedy: "make them equal, or delete the destination set",
		},
		{
			name: "destination-free", worst: Fail, wave: true, run: destinationFree,
			about:  "the names of pods and claims are free on the destination",
			remedy: "delete what is in the way, if its data is not needed",
		},
	})
}

func storageChecks() []check {
	return grouped("Storage", []check{
		{
			name: "claims-bound", worst: Fail, run: claimsBound,
			about:  "every claim and its volume name each other",
			remedy: "repair the storage of this ordinal",
		},
		{
			name: "claims-unshared", worst: Fail, run: claimsUnshared,
			about:  "no other pod mounts a claim of the set, and no snapshot, replication or clone keeps one",
			remedy: "wait for that pod, or delete it",
		},
		{
			name: "claims-left", worst: Fail, run: claimsLeft,
			about:  "no claim of an ordinal that is gone would be deleted with the source set",
			remedy: "take the owner reference off the claim",
		},
		{
			name: "volumes-settled", worst: Fail, wave: true, run: volumesSettled,
			about:  "no volume is being expanded or changed, and each claim agrees with its volume",
			remedy: "wait for the change to finish, or repair the binding",
		},
		{
			name: "volume-usable", worst: Fail, wave: true, run: volumesUsable,
			about:  "each volume means the same disk on the destination, and no other volume object means it",
			remedy: "install the driver, the class or the Secret there; data on volumes of one cluster has to be copied",
		},
		{
			name: "csi-driver", worst: Fail, ignorable: true, run: driversKnown,
			about:  "the volume handles of the CSI driver are known to mean the same disk in both clusters",
			remedy: "have an administrator annotate the CSIDriver of the destination, or --ignore csi-driver",
		},
		{
			name: "volumes-accepted", worst: Fail, wave: true, back: true, run: volumesAccepted,
			about:  "the clusters let the very volumes be made and handed over (tried with dry runs)",
			remedy: "`stsmigrate consent --cluster` prints what the cluster has to agree to",
		},
		{
			name: "snapshots", worst: Warn, ignorable: true, run: snapshotted,
			about:  "every claim has a VolumeSnapshot of the last 24 hours, where the source cluster makes such",
			remedy: "make snapshots, or see that there is another backup",
		},
		{
			name: "shared-volumes", worst: Fail, run: sharedUsable,
			about:  "claims that the pod template names can be mounted on both sides at once, or are there on the destination",
			remedy: "make the claim on the destination by hand",
		},
	})
}

// afterwardsChecks are about the time after the move: what becomes of the volumes there.
func afterwardsChecks() []check {
	return grouped("Storage", []check{
		{
			name: "disk-owner", worst: Fail, ignorable: true, run: disksOutlive,
			about:  "the disks do not go when the old cluster is deleted",
			remedy: "keep the old cluster until they are its own no longer",
		},
		{
			name: "never-attached", worst: Warn, ignorable: true, run: neverAttached,
			about:  "between clusters, the driver attaches disks that are for one node at a time",
			remedy: "read what the driver does to a disk that is mounted in two clusters",
		},
		{
			name: "namespace-kept", worst: Warn, ignorable: true, run: namespaceKept,
			about:  "within one cluster, neither the volumes nor their backups need the old namespace",
			remedy: "keep the namespace, or make anew what would go with it",
		},
		{
			name: "file-owners", worst: Warn, ignorable: true, run: sameIDs,
			about:  "on OpenShift, the namespaces give pods the same user, groups and SELinux label",
			remedy: "annotate the destination's namespace as the source's is, before any pod runs there",
		},
	})
}

func budgetChecks() []check {
	return grouped("Budget", []check{
		{
			name: "budget-alone", worst: Fail, wave: true, run: budgetAlone,
			about:  "at most one PodDisruptionBudget of each side is over pods of the set, over all of them and no others; the name of one that the plan makes is free",
			remedy: "narrow its selector, or delete it for the time of the move",
		},
		{
			name: "ready-for-a-while", worst: Warn, ignorable: true, run: rested,
			about:  "every pod has been Ready for " + minutes(settling),
			remedy: "wait, if the application needs time to settle",
		},
		{
			name: "drains", worst: Warn, ignorable: true, run: draining,
			about:  "no node is being drained",
			remedy: "let the drain finish, or uncordon the node",
		},
		{
			name: "gates", worst: Warn, ignorable: true, run: gatesAsked,
			about:  "a replicated database is asked before an ordinal goes and after it has come",
			remedy: "let gates ask it (docs/gates.md)",
		},
	})
}

func networkChecks() []check {
	return grouped("Network", []check{
		{
			name: "names", worst: Fail, run: namesThere,
			about:  "what keeps the pods' names answered can be made on both sides",
			remedy: "make room for it, or make the plan with --names none",
		},
		{
			name: "service", worst: Warn, ignorable: true, run: serviceNames,
			about:  "the governing Service is headless and publishes not-ready pods alike on both sides",
			remedy: "make the two Services equal",
		},
		{
			name: "old-names", worst: Warn, ignorable: true, run: oldNames,
			about:  "neither the pod template nor its ConfigMaps name the old namespace",
			remedy: "change the names after the move, or finalize with --keep-names",
		},
	})
}

func dependencyChecks() []check {
	return grouped("Dependencies", []check{
		{
			name: "namespace", worst: Fail, run: namespaceThere,
			about:  "the destination's namespace exists and stays",
			remedy: "create it",
		},
		{
			name: "dependencies", worst: Fail, run: dependenciesThere,
			about:  "what the pods name is absent on the destination, or equal; what something makes is there",
			remedy: "make them equal, or delete that of the destination; have its maker make it there",
		},
		{
			name: "rbac", worst: Warn, ignorable: true, run: bindingsThere,
			about:  "the roles bound to the service account are bound on the destination too",
			remedy: "bind them there; they do not come along",
		},
		{
			name: "classes", worst: Fail, run: classesThere,
			about:  "the priority, runtime, storage and device classes and the drivers that the pods name exist on the destination",
			remedy: "create them there, or patch the pods",
		},
		{
			name: "images", worst: Warn, ignorable: true, run: imagesReachable,
			about:  "the destination has the images, or pull secrets for their registries",
			remedy: "make sure that its nodes can pull them",
		},
		{
			name: "pod-accepted", worst: Fail, wave: true, run: podAccepted,
			about:  "the destination lets the very pod in: quota, LimitRange, Pod Security (tried with a dry run)",
			remedy: "make room, or change the namespace's limits or the pods",
		},
		{
			name: "claims-accepted", worst: Fail, wave: true, run: claimsAccepted,
			about:  "the destination lets the very claims in (tried with a dry run)",
			remedy: "make room, or change the namespace's limits",
		},
		{
			name: "quota", worst: Fail, wave: true, run: quotaSuffices,
			about:  "the quotas of the destination have room for all ordinals",
			remedy: "raise the quota",
		},
		{
			name: "admission", worst: Fail, wave: true, run: admitted,
			about:  "webhooks and policies of the destination accept the set unchanged (tried with a dry run)",
			remedy: "remove what they object to",
		},
	})
}

func capacityChecks() []check {
	return grouped("Capacity", []check{
		{
			name: "nodes-fit", worst: Fail, ignorable: true, wave: true, run: nodesFit,
			about:  "the destination has nodes for the pods: requests, taints, node affinity, and where the volumes are",
			remedy: "add nodes or free some, or --ignore nodes-fit where nodes come on demand",
		},
	})
}

// Ignorable refuses names of checks that a person may not ignore, and gives the rest
// sorted and without repetition, as a plan keeps them.
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
