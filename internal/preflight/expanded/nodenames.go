package expanded

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

var (
	// erlang matches the name of a node of Erlang: NAME@HOST.
	erlang = regexp.MustCompile(`^[A-Za-z][\w.-]*@[A-Za-z0-9][\w.-]*$`)
	// ofNodes matches the variables of which RabbitMQ, EMQX, VerneMQ, CouchDB and ejabberd make the name of their node.
	ofNodes = regexp.MustCompile(`^(RABBITMQ_NODENAME|RABBITMQ_NODE_NAME|K8S_HOSTNAME_SUFFIX|EMQX_NODE__?NAME|EMQX_HOST|DOCKER_VERNEMQ_NODENAME|NODENAME|ERLANG_NODE(_ARG)?)$`)
)

// asAnother finds programs that keep their data in a directory with the name of their node, where that name has the
// namespace in it: with another one they begin anew, beside the data that they have.
func (d directories) asAnother(c container) (out []check.Finding) {
	n := slices.IndexFunc(c.is.VolumeMounts, func(m corev1.VolumeMount) bool { return d.moves(m.Name) })
	if n < 0 {
		return nil
	}
	where := fmt.Sprintf("%s: spec.template.spec.%s[%s]", d.i.Name(plans.Destination), c.field, c.is.Name)
	was, is := d.variables(plans.Source, c), d.variables(plans.Destination, c)
	raw, _ := containerOf(d.raw[plans.Destination], c.field, c.is.Name)
	for k, e := range c.is.Env {
		from, to := was[e.Name], is[e.Name]
		if from == to || !erlang.MatchString(to) && !ofNodes.MatchString(e.Name) {
			continue
		}
		value := d.settled(c, raw.Env[k].Value)
		if value == "" {
			value = from
		}
		out = append(out, d.begins(where+".env["+e.Name+"]", from, to, c.is.VolumeMounts[n].Name, envPatch(c.field, c.is.Name, raw.Env[k], value)))
	}
	for k := range min(len(c.was.Args), len(c.is.Args)) {
		if from, to := c.was.Args[k], c.is.Args[k]; from != to && erlang.MatchString(to) {
			out = append(out, d.begins(fmt.Sprintf("%s.args[%d]", where, k), from, to, c.is.VolumeMounts[n].Name,
				fmt.Sprintf("- {op: replace, path: /spec/template/spec/%s/%d/args/%d, value: %s}", c.field, c.index, k, quoted(d.settled(c, raw.Args[k])))))
		}
	}
	if is["RABBITMQ_USE_LONGNAME"] == "true" && is["RABBITMQ_NODENAME"] == "" && is["K8S_HOSTNAME_SUFFIX"] == "" && d.at[plans.Source].Namespace != d.at[plans.Destination].Namespace {
		name := func(side plans.Side) string {
			return fmt.Sprintf("rabbit@%s.%s.%s.svc.cluster.local", d.pods[side].Name, d.destined.Spec.ServiceName, d.at[side].Namespace)
		}
		out = append(out, d.begins(where+".env[RABBITMQ_USE_LONGNAME]", name(plans.Source), name(plans.Destination), c.is.VolumeMounts[n].Name,
			envPatch(c.field, c.is.Name, corev1.EnvVar{Name: "RABBITMQ_NODENAME"}, "rabbit@$(POD_NAME)."+d.destined.Spec.ServiceName+"."+d.at[plans.Source].Namespace+".svc.cluster.local")))
	}
	return out
}

func (d directories) begins(where, from, to, volume, patch string) check.Finding {
	return check.Finding{
		Object: where, Saw: fmt.Sprintf("the node is %q on the source and would be %q on the destination: its data is in a directory of that name on volume %s, and it would begin in another one, as another member", from, to, volume),
		Want:   "the name that the data has, on both sides",
		Remedy: "keep the old name, and have it answered after the move with `finalize --keep-names`: --patch FILE where FILE has\n" + patch,
	}
}

// scripts finds texts of ConfigMaps that make another path on a volume that moves of the variables of a container.
func (d directories) scripts(c container) (out []check.Finding) {
	was, is := d.variables(plans.Source, c), d.variables(plans.Destination, c)
	for _, dep := range d.i.Plan.Dependencies {
		conf, ok := d.objects[plans.Destination][named(dep)].(*corev1.ConfigMap)
		if !ok {
			continue
		}
		for _, x := range keysOf("ConfigMap", conf, conf.Data) {
			if volume, from, to := d.onVolume(c, expansion.Shell(x.is, was), expansion.Shell(x.is, is)); volume != "" {
				f := d.another("", volume, from, to, "")
				f.Object, f.Remedy = x.at, fmt.Sprintf("write the old directory there, or give container %s the old value of the variable with --patch", c.is.Name)
				out = append(out, f)
			}
		}
	}
	return out
}
