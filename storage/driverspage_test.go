package storage

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// driversIntro is the part of docs/drivers.md above the tables.
const driversIntro = `# CSI drivers

What is known about the volume handles of CSI drivers. It decides whether a volume may move to another cluster
([reimport](storage/reimport.md)). Within one cluster the driver does not matter: the volume object stays
([rebind](storage/rebind.md)).

This page is generated from the code that decides (` + "`go test ./storage -run Drivers -update`" + `). It contains what
the drivers document. The end-to-end tests move volumes of a driver of their own, and not of these.
`

const portableIntro = `
## Handles that mean the same disk in another cluster

Both clusters must share what the second column names, and the driver must be installed in both. ` + "`check`" + `
compares what the API shows of it.

EKS Auto Mode calls the first one ` + "`ebs.csi.eks.amazonaws.com`" + `, and Rook puts the namespace of its operator
before the names of Ceph's; both are recognized.

| driver | both clusters share | classes must agree about |
| --- | --- | --- |
`

const ownerIntro = `
## Disks that may go with the old cluster

Moving a disk does not change who it belongs to in the storage system. Read [before the old cluster
goes](storage/before-the-old-cluster-goes.md) before you delete the source cluster.

| driver | what shows the old cluster | how to see it |
| --- | --- | --- |
`

const clusterIntro = `
## Handles of one cluster

These name an object or a folder of one cluster. The volumes move to another namespace, and to another cluster
only empty (` + "`--empty TEMPLATE`" + `), where the application replicates its data.

`

const unknownText = `
## Any other driver

The check ` + "`csi-driver`" + ` refuses a move to another cluster until an administrator of the destination confirms
that a handle means the same disk there:

` + "```sh\nkubectl --context west annotate csidriver disk.csi.example.com stsmigrate.dev/portable-handles=true\n```" + `

Some drivers are listed above and need that statement all the same, because their handles differ by
installation:

`

// driversPage returns docs/drivers.md.
func driversPage() string {
	var b strings.Builder
	names := slices.SortedFunc(maps.Keys(drivers()), func(a, b string) int { return cmp.Compare(fromVendor(a), fromVendor(b)) })
	write := func(intro string, row func(name string, d Driver) string) {
		b.WriteString(intro)
		for _, name := range names {
			b.WriteString(row(name, drivers()[name]))
		}
	}
	b.WriteString(driversIntro)
	write(portableIntro, func(name string, d Driver) string {
		if d.Handles != PortableHandles {
			return ""
		}
		return fmt.Sprintf("| `%s` | %s | %s |\n", name, d.Share, listed(d.Backend))
	})
	write(ownerIntro, func(name string, d Driver) string {
		if d.Owner == "" {
			return ""
		}
		return fmt.Sprintf("| `%s` | %s | %s |\n", name, d.Owner, command(d.Look))
	})
	write(clusterIntro, func(name string, d Driver) string {
		if d.Handles != ClusterHandles {
			return ""
		}
		return "- `" + name + "`\n"
	})
	write(unknownText, func(name string, d Driver) string {
		if d.Handles != UnknownHandles {
			return ""
		}
		return fmt.Sprintf("- `%s`: both clusters must share %s\n", name, d.Share)
	})
	return b.String()
}

// fromVendor returns a driver's name from its vendor on, so that the drivers of one vendor are neighbours.
func fromVendor(name string) string {
	parts := strings.Split(name, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

func listed(parameters []string) string {
	if len(parameters) == 0 {
		return ""
	}
	return "`" + strings.Join(parameters, "`, `") + "`"
}

// command returns a command as a cell: the comment behind it is prose.
func command(look string) string {
	line, comment, _ := strings.Cut(look, "   # ")
	switch {
	case line == "":
		return ""
	case comment == "":
		return "`" + line + "`"
	}
	return "`" + line + "`: " + comment
}

// TestDriversPageIsAsGenerated keeps the page and the code that decides about drivers the same.
func TestDriversPageIsAsGenerated(t *testing.T) {
	const file = "../docs/drivers.md"
	if *update {
		if err := os.WriteFile(file, []byte(driversPage()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(driversPage(), string(raw)); diff != "" {
		t.Errorf("%s is stale, run go test ./storage -run Drivers -update (-want +got):\n%s", file, diff)
	}
}

// A driver in no table would be known to the code and to no reader.
func TestEveryDriverIsOnThePage(t *testing.T) {
	for name, d := range drivers() {
		if !strings.Contains(driversPage(), "`"+name+"`") {
			t.Errorf("%s (%s) is in no table", name, d.Handles)
		}
	}
}
