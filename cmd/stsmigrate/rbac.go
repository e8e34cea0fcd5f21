package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/remarks"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// sideFlags name a plan in a file and one of its sides.
type sideFlags struct {
	plan, side string
}

func (f *sideFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.plan, "plan", "", "the file of the plan, as written by plan --out")
	cmd.Flags().StringVar(&f.side, "side", "", "source or destination (default: both)")
}

func (a *app) rbacCommand() *cobra.Command {
	var f sideFlags
	var set draft.Flags
	var account string
	var users, groups []string
	cmd := &cobra.Command{
		Use:   "rbac --plan FILE | rbac SET --user NAME | rbac -f FILE --user NAME",
		Short: "Print the Roles that an orchestrator needs for one plan, or a user for a set or a plan",
		Long: `Print the Roles that an orchestrator needs for one plan on both sides, with the names of what
it is about. With --user or --group, print those of users who carry it out with commands. They hold for
this move and can be taken away after it (revoke). Printed again while the plan is under way they name
the same: volumes that have moved too. What a volume stands for in the storage is beside its name: the
user who applies them lets the orchestrator mount it.

For a set of which there is no plan yet, print the Roles to look, with which users make the plan and run
its checks, and the Roles to move, with which they carry it out. A user who may not read the set prints
the Roles to look. Name all users at once: applied again for others, the bindings replace those before.

RBAC cannot limit "create" to names. Where the plan creates volumes (between clusters, or of a disk that
all pods share), users may therefore create any volume, such as a hostPath, and with it read and write
the files of a node. The policies limit orchestrators alone. Grant that rule, which has a comment, only
to users who may do that anyway. The same is true of pods where the plan takes places (--placeholder):
that rule has a comment too, and a plan with --placeholder off does without it.

One side needs no more than its own cluster, but for the destination, whose volumes are those of the
source. For one side alone:

  stsmigrate rbac --plan web.yaml --side source | kubectl --context east apply -f -
  stsmigrate rbac --plan web.yaml --user anna --group storage-admins
  stsmigrate rbac web -n shop --to-namespace shop-new --user anna | kubectl apply -f -`,
		Args: program.OptionalArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := named(account)
			if err = cmp.Or(err, notEmpty(cmd, map[string][]string{"user": users, "group": groups}), oneSide(f.side)); err != nil {
				return err
			}
			if f.plan == "" && (len(args) > 0 || set.File != "") {
				return before{&set, f.side, users, groups, args}.print(cmd.Context(), a)
			}
			if len(args) > 0 {
				return fmt.Errorf("%s is named beside a plan: give either the set or --plan", args[0])
			}
			if f.plan == "" {
				return errors.New("name the set, or the file of its plan with --plan (`stsmigrate plan SET --out FILE` writes one)")
			}
			return a.perSide(cmd.Context(), &f, rolesFor(who, users, groups))
		},
	}
	f.add(cmd)
	set.AddTo(cmd)
	cmd.Flags().StringVar(&account, "account", "stsmigrate/orchestrator", "the ServiceAccount they are for, as NAMESPACE/NAME")
	cmd.Flags().StringSliceVar(&users, "user", nil, "the users they are for, who carry the plan out with commands (repeatable, or a comma list)")
	cmd.Flags().StringSliceVar(&groups, "group", nil, "the groups they are for (repeatable, or a comma list)")
	cmd.MarkFlagsMutuallyExclusive("account", "user")
	cmd.MarkFlagsMutuallyExclusive("account", "group")
	return cmd
}

// rolesFor returns what lists the Roles of a plan on a side: for users, or for an orchestrator.
func rolesFor(who types.NamespacedName, users, groups []string) func(context.Context, *reach.Sides, plans.Side) ([]client.Object, remarks.Remarks, error) {
	return func(ctx context.Context, r *reach.Sides, side plans.Side) ([]client.Object, remarks.Remarks, error) {
		disks, err := r.Disks(ctx, side)
		if err == nil && len(users)+len(groups) > 0 {
			return access.UserRoles(r.Plan, side, users, groups, access.Names(disks)), remarks.Of(disks).ForUsers(), nil
		}
		return access.Roles(r.Plan, side, who, access.Names(disks)), remarks.Of(disks), err
	}
}

// notEmpty refuses a flag whose value is a variable of the shell that is not set.
func notEmpty(cmd *cobra.Command, flags map[string][]string) error {
	for flag, names := range flags {
		if cmd.Flags().Changed(flag) && (len(names) == 0 || slices.Contains(names, "")) {
			return fmt.Errorf("--%s is empty: expected the name of a %s", flag, flag)
		}
	}
	return nil
}

// named returns the ServiceAccount that a user has typed.
func named(account string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(account, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("--account is %q: expected NAMESPACE/NAME of a ServiceAccount", account)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// perSide prints objects for the requested sides.
func (a *app) perSide(ctx context.Context, f *sideFlags, objects func(context.Context, *reach.Sides, plans.Side) ([]client.Object, remarks.Remarks, error)) error {
	if err := oneSide(f.side); err != nil {
		return err
	}
	if f.plan == "" {
		return errors.New("name the file of the plan with --plan: `stsmigrate plan SET --out FILE` writes one")
	}
	raw, err := os.ReadFile(f.plan)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	p, err := plans.DecodePlan(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", f.plan, err)
	}
	r, err := a.reach.Either(ctx, p)
	if err != nil {
		return err
	}
	var out strings.Builder // all of it or nothing: a part of the Roles would be taken for all of them
	for _, side := range plans.Sides() {
		if f.side != "" && f.side != string(side) {
			continue
		}
		if err := r.Lost[side]; err != nil {
			return err
		}
		all, beside, err := objects(ctx, r, side)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "# for the %s, %s\n", side, p.On(side))
		for _, o := range all {
			text, err := yaml.Marshal(o)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "---\n%s", beside.In(string(text)))
		}
	}
	_, err = a.Out.Write([]byte(out.String()))
	return err
}

// oneSide checks that side is the name of a side, or empty.
func oneSide(side string) error {
	if side != "" && side != string(plans.Source) && side != string(plans.Destination) {
		return fmt.Errorf("--side is %q: expected source or destination", side)
	}
	return nil
}
