package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"samsa/internal/base/config"
	"samsa/internal/server"
)

func init() { commands = append(commands, newServerCommand) }

// newServerCommand is `samsa server`: a node from server.properties.
func newServerCommand() *cobra.Command {
	var file, level string
	var set []string
	cmd := &cobra.Command{
		Use:   "server -c server.properties [--set key=value ...]",
		Short: "Run a node: process.roles decides whether broker, controller or both",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, logLevel, err := newLogger(cmd.ErrOrStderr(), level)
			if err != nil {
				return &usageError{cmd, err}
			}
			cfg, err := loadConfig(file, set, log)
			if err != nil {
				return err
			}
			return serve(cfg, log, logLevel, nil)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the properties file, as Kafka's")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a property that overrides the file and the environment; may be repeated")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// loadConfig reads the properties file, the environment and the --set flags.
func loadConfig(file string, set []string, log *slog.Logger) (*config.Node, error) {
	in := config.Input{File: file, Environ: os.Environ(), Set: set}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
		in.Properties = text
	}
	cfg, warnings, err := config.Load(in)
	for _, w := range warnings {
		log.Warn("configuration", "what", w)
	}
	return cfg, err
}

// newLogger writes to w from level on; the level can be changed while the node runs.
func newLogger(w io.Writer, level string) (*slog.Logger, *slog.LevelVar, error) {
	var l slog.LevelVar
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q: debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: &l})), &l, nil
}

// serve runs a node until a signal or its failure. The first SIGTERM or SIGINT is a controlled
// shutdown with clean markers, a second one ends the process at once. started, if not nil, is called
// when the node serves.
func serve(cfg *config.Node, log *slog.Logger, level *slog.LevelVar, started func(*server.Node)) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	boundMemory(log)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	type result struct {
		node *server.Node
		err  error
	}
	up := make(chan result, 1)
	go func() {
		n, err := server.Start(ctx, server.Options{Config: cfg, Log: log, LogLevel: level})
		up <- result{n, err}
	}()
	var n *server.Node
	select {
	case s := <-signals:
		log.Info("stopping before the start was complete", "signal", s)
		cancel(errors.New("stopped by a signal"))
		go hardStop(signals, log)
		if r := <-up; r.node != nil {
			return r.node.Stop(context.Background())
		}
		return nil
	case r := <-up:
		if r.err != nil {
			return r.err
		}
		n = r.node
	}
	if started != nil {
		started(n)
	}
	select {
	case s := <-signals:
		log.Info("stopping", "signal", s)
		go hardStop(signals, log)
		return n.Stop(context.Background())
	case <-n.Failed():
		go hardStop(signals, log)
		err := n.Failure()
		n.Stop(context.Background())
		return err
	}
}

// hardStop ends the process at the next signal.
func hardStop(signals <-chan os.Signal, log *slog.Logger) {
	s := <-signals
	log.Warn("stopping at once: the next start will recover the logs", "signal", s)
	os.Exit(exitFailed)
}
