package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what this build calls itself; the Kafka release is the one whose behaviour it has.
const (
	version      = "0.1.0"
	kafkaRelease = "4.4.0"
)

func init() { commands = append(commands, newVersionCommand) }

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" && len(s.Value) >= 12 {
						commit = ", commit " + s.Value[:12]
					}
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "samsa %s (Apache Kafka %s%s, %s)\n", version, kafkaRelease, commit, runtime.Version())
			return err
		},
	}
}
