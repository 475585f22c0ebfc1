package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/server/storagetool"
)

func init() { commands = append(commands, newStorageCommand) }

// newStorageCommand is `samsa storage`: the flags, texts and exit codes of kafka-storage.sh.
func newStorageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "storage",
		Short:       "Format log directories and look at them",
		Long:        "Formats log directories and looks at them, with the flags of kafka-storage.sh.",
		Annotations: map[string]string{annotationUsageExit: "1"},
	}
	cmd.AddCommand(storageFormat(), storageInfo(), storageRandomUUID(), storageVersionMapping(), storageDependencies(), storageUpdateDirectories())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, "'"+c.Name()+"'")
		}
		choice := ""
		if len(args) > 0 {
			choice = args[0]
		}
		return &usageError{cmd, fmt.Errorf("invalid choice: '%s' (choose from %s)", choice, strings.Join(names, ", "))}
	}
	return cmd
}

// noArguments refuses positional arguments as Kafka's tool does.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{cmd, fmt.Errorf("unrecognized arguments: '%s'", strings.Join(args, "' '"))}
	}
	return nil
}

// required refuses a command line that lacks a flag.
func required(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); !f.Changed {
			return &usageError{cmd, fmt.Errorf("argument --%s/-%s is required", f.Name, f.Shorthand)}
		}
	}
	return nil
}

// loadNode reads the configuration file of a node, environment included.
func loadNode(cmd *cobra.Command, file string) (*config.Node, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration file: %w", err)
	}
	n, warnings, err := config.Load(config.Input{File: file, Properties: text, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	return n, nil
}

func storageFormat() *cobra.Command {
	var file, initial, form string
	o := storagetool.Options{FS: vfs.OS()}
	cmd := &cobra.Command{
		Use:   "format -c FILE -t CLUSTER_ID",
		Short: "Format the log directories of this node",
		Args:  noArguments,
	}
	f := cmd.Flags()
	f.StringVarP(&file, "config", "c", "", "the node's configuration file")
	f.StringVarP(&o.ClusterID, "cluster-id", "t", "", "the id of the cluster; the same on all nodes")
	f.StringArrayVarP(&o.Scram, "add-scram", "S", nil, "a SCRAM user for the new cluster, e.g. 'SCRAM-SHA-256=[name=alice,password=alice-secret]'\n"+
		"or 'SCRAM-SHA-512=[name=alice,iterations=8192,salt=\"N3E=\",saltedpassword=\"YCE=\"]'; may be repeated")
	f.BoolVarP(&o.IgnoreFormatted, "ignore-formatted", "g", false, "leave directories alone that are formatted already, and format the others")
	f.StringVarP(&o.Release, "release-version", "r", "", "the release whose features the cluster begins with, from 3.3-IV3 to 4.4-IV2 (default 4.4-IV2)")
	f.StringArrayVarP(&o.Features, "feature", "f", nil, "the level of one feature, as name=level; may be repeated")
	f.BoolVarP(&o.Standalone, "standalone", "s", false, "make this controller the only voter of a dynamic quorum")
	f.BoolVarP(&o.NoInitialControllers, "no-initial-controllers", "N", false, "name no voters: the node joins a dynamic quorum later")
	f.StringVarP(&initial, "initial-controllers", "I", "", "the voters of a dynamic quorum, as id@host:port:directory,...; the same on all nodes")
	f.BoolVar(&o.RequireAllDirs, "require-all-dirs", false, "refuse, where Kafka's tool skips a directory that cannot be read")
	f.StringVar(&form, "checkpoint-form", "4.x", "who must find the cluster's first records: 4.x (every Kafka 4) or 4.4 (as Kafka 4.4 writes them)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := required(cmd, "config", "cluster-id"); err != nil {
			return err
		}
		if err := exclusive(cmd, "standalone", "no-initial-controllers", "initial-controllers"); err != nil {
			return err
		}
		switch form {
		case "4.x":
			o.Checkpoint = storagetool.CheckpointAll4x
		case "4.4":
			o.Checkpoint = storagetool.Checkpoint44
		default:
			return &usageError{cmd, fmt.Errorf("argument --checkpoint-form: invalid choice: '%s' (choose from '4.x', '4.4')", form)}
		}
		n, err := loadNode(cmd, file)
		if err != nil {
			return err
		}
		if f.Changed("initial-controllers") {
			o.InitialControllers = &initial
		}
		o.Out = cmd.OutOrStdout()
		o.FromConfig(n)
		return storagetool.Format(o)
	}
	return cmd
}

// exclusive refuses two flags that cannot go together.
func exclusive(cmd *cobra.Command, flags ...string) error {
	first := ""
	for _, name := range flags {
		f := cmd.Flags().Lookup(name)
		if !f.Changed {
			continue
		}
		this := "--" + f.Name + "/-" + f.Shorthand
		if first != "" {
			return &usageError{cmd, fmt.Errorf("argument %s: not allowed with argument %s", this, first)}
		}
		first = this
	}
	return nil
}

func storageInfo() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "info -c FILE", Short: "Show what the log directories of this node hold and what is wrong with them", Args: noArguments}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the node's configuration file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := required(cmd, "config"); err != nil {
			return err
		}
		n, err := loadNode(cmd, file)
		if err != nil {
			return err
		}
		if !storagetool.Info(cmd.OutOrStdout(), vfs.OS(), n.LogDirs, n.MetadataLogDir) {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return cmd
}

func storageRandomUUID() *cobra.Command {
	return &cobra.Command{Use: "random-uuid", Short: "Print a random id", Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), model.RandomUUID())
		return err
	}}
}

func storageVersionMapping() *cobra.Command {
	var release string
	cmd := &cobra.Command{Use: "version-mapping [-r RELEASE]", Short: "Show the features of a release", Args: noArguments}
	cmd.Flags().StringVarP(&release, "release-version", "r", "", "the release, from 3.3-IV3 on (default 4.4-IV2)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text, err := storagetool.VersionMapping(release)
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	return cmd
}

func storageDependencies() *cobra.Command {
	var features []string
	cmd := &cobra.Command{Use: "feature-dependencies -f NAME=LEVEL", Short: "Show what a feature cannot do without", Args: noArguments}
	cmd.Flags().StringArrayVarP(&features, "feature", "f", nil, "a feature, as name=level; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := required(cmd, "feature"); err != nil {
			return err
		}
		text, err := storagetool.FeatureDependencies(features)
		if _, werr := io.WriteString(cmd.OutOrStdout(), text); err == nil {
			err = werr
		}
		return err
	}
	return cmd
}

func storageUpdateDirectories() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "update-directories -c FILE", Short: "Give every formatted directory its id, and the list of all ids", Args: noArguments}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the node's configuration file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := required(cmd, "config"); err != nil {
			return err
		}
		n, err := loadNode(cmd, file)
		if err != nil {
			return err
		}
		o := storagetool.Options{FS: vfs.OS()}
		o.FromConfig(n)
		return storagetool.UpdateDirectories(cmd.OutOrStdout(), o)
	}
	return cmd
}
