package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/strvals"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/deploy"
)

// installFlags are the flags of install.
type installFlags struct {
	apply bool
	files []string
	set   []string
}

func (a *app) installCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: "install [COMPONENT...]", Short: "Print what a cluster needs, or apply it",
		Long: `Print what a cluster needs, or apply it with --apply. It is what the Helm chart
makes. The components, and where they belong:

  orchestrator     carries out plans; in the cluster that keeps them (the default)
  account          the orchestrator's account; in every other cluster that it works in
  slicecontroller  reconciles StatefulSetSlices; where there are such sets
  webhook          with the slice controller: refuses slices whose pods cannot be created (needs cert-manager)
  policies         protect volumes and sets from the mistakes of all users during moves; for every cluster
  monitoring       ServiceMonitors, alert rules and dashboards of the others that are named; where
                   Prometheus Operator runs

  stsmigrate install --context east orchestrator policies --apply
  stsmigrate install --context west account policies | kubectl --context west apply -f -

The values of --set and --values are those of deploy/chart/values.yaml.`,
		ValidArgs: deploy.Components(),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace := cmp.Or(a.reach.Namespace(), "stsmigrate")
			if len(args) == 0 {
				args = []string{"orchestrator"}
			}
			values, err := f.values(args)
			if err != nil {
				return err
			}
			objects, err := deploy.Render(namespace, version, values)
			if err != nil {
				return err
			}
			if !f.apply {
				_, err := a.Out.Write(objects)
				return err
			}
			return a.install(cmd.Context(), namespace, objects)
		},
	}
	cmd.Flags().BoolVar(&f.apply, "apply", false, "apply it to the cluster of --context, in place of printing it")
	cmd.Flags().StringArrayVarP(&f.files, "values", "f", nil, "a file with values; later ones win")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a value, as orchestrator.replicas=3; wins over files")
	return cmd
}

// values merges the values of the components, then of the files, then of --set. Later values win.
func (f *installFlags) values(components []string) (map[string]any, error) {
	values, err := deploy.Values(components...)
	if err != nil {
		return nil, err
	}
	for _, name := range f.files {
		raw, err := os.ReadFile(name) //nolint:gosec // the person names the file
		if err != nil {
			return nil, err
		}
		var said map[string]any
		if err := yaml.Unmarshal(raw, &said); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values = util.MergeTables(said, values)
	}
	for _, s := range f.set {
		if err := strvals.ParseInto(s, values); err != nil {
			return nil, fmt.Errorf("--set %s: %w", s, err)
		}
	}
	return values, nil
}

// install applies objects in their order. Fields that other writers own are kept. A conflict on one of our
// fields is an error that names them.
func (a *app) install(ctx context.Context, namespace string, objects []byte) error {
	at, err := a.reach.Single()
	if err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for d := yamlstream.NewYAMLOrJSONDecoder(bytes.NewReader(objects), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		all = append(all, o)
	}
	for _, o := range all { // BEFORE anything is written
		if err := free(ctx, at.Client, namespace, o); err != nil {
			return err
		}
	}
	if kind := consentKind(all); kind != nil {
		if err := agreedBefore(ctx, at.Client, kind); err != nil {
			return err
		}
	}
	for _, o := range all {
		if err := at.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("stsmigrate")); err != nil {
			return fmt.Errorf("%s: %w; what was printed before has been applied, and the command can be given again", titled(o), err)
		}
		fmt.Fprintf(a.Out, "%s applied\n", titled(o))
		if o == consentKind(all) { // BEFORE the policy that compares with it
			if err := beginConsent(ctx, at.Client); err != nil {
				return err
			}
		}
	}
	return nil
}

// goes returns why nothing is installed onto an object of a kind while it is being deleted, or "": what is created
// in it is refused, and what is there goes with it.
func goes(kind string) string {
	switch kind {
	case "Namespace":
		return "nothing can be created in it; install again when it is gone"
	case "CustomResourceDefinition":
		return "no object of it can be created, and it goes with its last one; install again when it is gone. Plans under way keep their objects until they end (`kubectl get statefulsetmigrations -A`); an orchestrator that is gone can be installed to end them, with --set crds.install=false"
	}
	return ""
}

func titled(o *unstructured.Unstructured) string {
	return strings.ToLower(o.GetKind()) + "/" + o.GetName()
}

// free returns an error if an object that contains others is being deleted, or if a cluster-scoped object belongs to
// the install of another namespace. Applying that one would replace that install's subjects and accounts. That install
// would lose its rights, and its volumes their protection, in the middle of a move.
func free(ctx context.Context, on client.Client, own string, o *unstructured.Unstructured) error {
	contains := goes(o.GetKind())
	if o.GetLabels()[deploy.InstallLabel] == "" && contains == "" {
		return nil
	}
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(o.GroupVersionKind())
	err := on.Get(ctx, client.ObjectKeyFromObject(o), have)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether %s is free: %w", titled(o), err)
	case contains != "" && have.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted, and nothing was applied: %s", titled(o), contains)
	}
	owner := cmp.Or(have.GetLabels()[deploy.InstallLabel], have.GetAnnotations()["meta.helm.sh/release-namespace"])
	if owner == "" || owner == own {
		return nil
	}
	remedy := "a cluster has it once, so leave that component out here"
	switch {
	case o.GetKind() == "CustomResourceDefinition": // of a release of helm
		remedy = "a cluster has it once, and that release upgrades it: add --set crds.install=false"
	case strings.HasPrefix(o.GetName(), "stsmigrate-requests"):
		remedy = "one orchestrator of a cluster takes the requests of all namespaces: name those of this one, --set orchestrator.requestsFrom={NAMESPACE,...}"
	case o.GetLabels()["app.kubernetes.io/name"] == "policies":
		remedy = fmt.Sprintf("a cluster has its policies once: leave the component policies out here, and name this account there: stsmigrate install -n %s policies --set policies.accounts={system:serviceaccount:%s:orchestrator} --apply", owner, own)
	}
	return fmt.Errorf("%s belongs to the install in namespace %s, and nothing was applied: %s", titled(o), owner, remedy)
}
