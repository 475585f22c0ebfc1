package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/server"
	"samsa/internal/server/storagetool"
)

func init() { commands = append(commands, newDevCommand) }

// devOptions are the flags of `samsa dev`.
type devOptions struct {
	dir         string
	disks, port int
	set         []string
	level       string
}

// newDevCommand is `samsa dev`: a node without any configuration.
func newDevCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev [--dir D] [--disks M] [--port P]",
		Short: "Run one node without any configuration: format if empty, start, say how to connect",
		Long: "Runs one node with both roles on this machine's loopback. Its data stays in the directory,\n" +
			"so the next start finds it again.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.disks < 1 || o.port < 1 || o.port > 65533 {
				return &usageError{cmd, errors.New("--disks must be at least 1, and --port between 1 and 65533: the two ports after it are used too")}
			}
			log, level, err := newLogger(cmd.ErrOrStderr(), o.level)
			if err != nil {
				return &usageError{cmd, err}
			}
			return dev(cmd.OutOrStdout(), log, level, o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "data", "where the data is")
	cmd.Flags().IntVar(&o.disks, "disks", 2, "how many log directories a new node gets")
	cmd.Flags().IntVar(&o.port, "port", 9092, "the port clients use; the next one is for /metrics, the one after for the controller")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "a property that overrides the defaults; may be repeated")
	cmd.Flags().StringVar(&o.level, "log-level", "warn", "debug, info, warn or error")
	return cmd
}

func dev(stdout io.Writer, log *slog.Logger, logLevel *slog.LevelVar, o devOptions) error {
	properties := devProperties(o)
	cfg, warnings, err := config.Load(config.Input{File: "samsa dev", Properties: []byte(properties), Environ: os.Environ(), Set: o.set})
	for _, w := range warnings {
		log.Warn("configuration", "what", w)
	}
	if err != nil {
		return err
	}
	if err := formatIfEmpty(cfg); err != nil {
		return err
	}
	begin := time.Now()
	return serve(cfg, log, logLevel, func(n *server.Node) { devBanner(stdout, n, o, time.Since(begin)) })
}

// devProperties is the configuration of a node on the loopback. A directory that is in use keeps
// the number of disks it has.
func devProperties(o devOptions) string {
	var dirs []string
	for i := 1; i <= o.disks || exists(filepath.Join(o.dir, "d"+strconv.Itoa(i))); i++ {
		dirs = append(dirs, filepath.Join(o.dir, "d"+strconv.Itoa(i)))
	}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	return fmt.Sprintf(`process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%s,CONTROLLER://%s
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=%s
samsa.http.listener=%s
log.dirs=%s
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
`, at(o.port), at(o.port+2), at(o.port+2), at(o.port+1), strings.Join(dirs, ","))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// formatIfEmpty formats the directories if none of them has been; anything else found there is
// left for the start to judge.
func formatIfEmpty(cfg *config.Node) error {
	for _, dir := range cfg.LogDirs {
		_, err := os.Stat(filepath.Join(dir, "meta.properties"))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for %s/meta.properties: %w", dir, err)
		}
	}
	o := storagetool.Options{FS: vfs.OS(), Out: io.Discard, ClusterID: model.RandomUUID().String(), Standalone: true}
	o.FromConfig(cfg)
	return storagetool.Format(o)
}

// devBanner says where the node listens and what to try.
func devBanner(w io.Writer, n *server.Node, o devOptions, took time.Duration) {
	addr := n.Addr("PLAINTEXT")
	fmt.Fprintf(w, `samsa listens on %s, data in %s, ready after %d ms. Try:

  echo hello | kcat -P -b %s -t greetings
  kcat -C -b %s -t greetings -o beginning -e
  curl -s http://%s/metrics | head

Ctrl-C stops it.
`, addr, o.dir, took.Milliseconds(), addr, addr, n.HTTPAddr())
}
