// Command samsa is a Kafka node in one binary. `samsa help` lists what it does.
//
// Each subcommand lives in a file of its own and registers itself in commands. Exit codes: 0
// done, 1 refused or failed, 2 wrong usage (`samsa storage` exits 1 there, as Kafka's tool does).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands make the subcommands; each file of this package adds its own in an init function.
var commands []func() *cobra.Command

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error // nil: everything has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// usageError is returned where the command line cannot be understood: the usage of the
// command is shown on standard error, and the error below it.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main for tests: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:               "samsa",
		Short:             "A Kafka node: broker, controller, or both, and its tools",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd, err} })
	for _, make := range commands {
		root.AddCommand(make())
	}
	cmd, err := root.ExecuteC()
	return exitCode(cmd, err, stderr)
}

// exitCode says on stderr what went wrong and turns it into the exit code.
func exitCode(cmd *cobra.Command, err error, stderr io.Writer) int {
	var exit *exitError
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(stderr, exit.err)
		}
		return exit.code
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s%s: error: %v\n", usage.cmd.UsageString(), usage.cmd.CommandPath(), usage.err)
	case cmd.Parent() == nil || cmd.HasAvailableSubCommands(): // an unknown command
		fmt.Fprintf(stderr, "%s: error: %v\nRun '%s --help' for what there is.\n", cmd.CommandPath(), err, cmd.CommandPath())
	default:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	for c := cmd; c != nil; c = c.Parent() {
		if c.Annotations[annotationUsageExit] == "1" {
			return exitFailed
		}
	}
	return exitUsage
}

// annotationUsageExit, set to "1" on a command, makes wrong usage of it and of its subcommands exit with 1.
const annotationUsageExit = "usage-exit"
