package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// contender is a program under measurement.
type contender struct {
	name string
	// format makes a node's directory usable; nil when there is nothing to do.
	format func(b *bench, dir string)
	// command starts the node in dir.
	command func(b *bench, dir string) *exec.Cmd
}

// Where the node listens; -port moves all.
var brokerPort, brokerAddr, controllerAddr, httpAddr = 0, "", "", ""

func setPort(port int) {
	brokerPort = port
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	brokerAddr, controllerAddr, httpAddr = at(port), at(port+1), at(port+2)
}

const clusterID = "SamsaBenchCluster00000"

func contenderOf(name string) contender {
	c, err := contenderByName(name)
	check(err)
	return c
}

func contenderByName(name string) (contender, error) {
	switch name {
	case "samsa":
		return contender{name, formatSamsa, func(b *bench, dir string) *exec.Cmd {
			return exec.Command(b.samsa, "server", "-c", properties(dir), "--log-level", "warn")
		}}, nil
	case "kafka":
		return contender{name, formatKafka, func(b *bench, dir string) *exec.Cmd {
			return b.java([]string{"-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
				"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"}, "kafka.Kafka", properties(dir))
		}}, nil
	case "floor":
		return contender{name, func(*bench, string) {}, func(b *bench, dir string) *exec.Cmd {
			self, err := os.Executable()
			check(err)
			return exec.Command(self, "floor", brokerAddr, dir)
		}}, nil
	}
	return contender{}, fmt.Errorf("no contender %q: samsa, kafka, floor", name)
}

// java runs one of Kafka's classes with logging turned down.
func (b *bench) java(flags []string, class string, args ...string) *exec.Cmd {
	if b.jars == "" {
		check(fmt.Errorf("where are Kafka's jars? Set SAMSA_PEERS or -jars (make peers fetches them)"))
	}
	all := append(flags, "-Dlog4j2.configurationFile=tools/peers/log4j2.xml", "-Dpeer.level=ERROR", "-cp", filepath.Join(b.jars, "*"), class)
	return exec.Command("java", append(all, args...)...)
}

// properties writes the one configuration both brokers get and returns its path.
func properties(dir string) string {
	path := filepath.Join(dir, "server.properties")
	text := strings.Join([]string{
		"process.roles=broker,controller", "node.id=1",
		"listeners=PLAINTEXT://" + brokerAddr + ",CONTROLLER://" + controllerAddr,
		"controller.listener.names=CONTROLLER",
		"controller.quorum.bootstrap.servers=" + controllerAddr,
		"samsa.http.listener=" + httpAddr, // Kafka warns of a name it does not know, and goes on
		"log.dirs=" + filepath.Join(dir, "d1") + "," + filepath.Join(dir, "d2"),
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"",
	}, "\n")
	check(os.WriteFile(path, []byte(text), 0o644))
	return path
}

func formatSamsa(b *bench, dir string) {
	run(exec.Command(b.samsa, "storage", "format", "-t", clusterID, "-c", properties(dir), "--standalone"))
}

func formatKafka(b *bench, dir string) {
	run(b.java([]string{"-Xmx256m"}, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", properties(dir), "--standalone"))
}

func run(cmd *exec.Cmd) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		check(fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out))
	}
}

// process is a running node.
type process struct {
	cmd     *exec.Cmd
	dir     string
	pid     int
	started time.Time
	log     *os.File
	ended   chan struct{}
}

func (b *bench) start(c contender, dir string) *process { return start(c.command(b, dir), dir) }

// start runs a command that dies with this one.
func start(cmd *exec.Cmd, dir string) *process {
	if conn, err := dialAddr(); err == nil {
		conn.Close()
		check(fmt.Errorf("somebody listens on %s already", brokerAddr))
	}
	log, err := os.Create(filepath.Join(dir, "process.log"))
	check(err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, dir: dir, log: log, ended: make(chan struct{})}
	began := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal comes when the thread that forked ends
		defer runtime.UnlockOSThread()
		p.started = time.Now()
		err := cmd.Start()
		began <- err
		if err == nil {
			cmd.Wait()
			close(p.ended)
		}
	}()
	check(<-began)
	p.pid = cmd.Process.Pid
	return p
}

// fresh starts a contender on a new directory and waits until it answers.
func (b *bench) fresh(c contender) *process {
	dir := b.dir(c.name)
	c.format(b, dir)
	p := b.start(c, dir)
	p.wait()
	return p
}

// wait returns when the node answers a request on its port.
func (p *process) wait() {
	p.until("answering", func() error {
		c, err := dial()
		if err != nil {
			return err
		}
		defer c.close()
		return c.alive()
	})
}

// until tries f until it works; the process must live meanwhile.
func (p *process) until(what string, f func() error) {
	deadline := time.Now().Add(15 * time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			p.fail(fmt.Errorf("%s: ended before it was %s: %w", p.cmd.Path, what, err))
		default:
		}
		if time.Now().After(deadline) {
			p.fail(fmt.Errorf("%s: not %s in time: %w", p.cmd.Path, what, err))
		}
		time.Sleep(time.Millisecond)
	}
}

// fail ends the bench with what the process wrote.
func (p *process) fail(err error) {
	text, _ := os.ReadFile(p.log.Name())
	check(fmt.Errorf("%w\n%s", err, text[max(0, len(text)-4000):]))
}

// stop ends the process in its orderly way and returns how long that took.
func (p *process) stop() time.Duration {
	begin := time.Now()
	check(p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(3 * time.Minute):
		p.fail(fmt.Errorf("%s: does not stop", p.cmd.Path))
	}
	p.log.Close()
	return time.Since(begin)
}

// kill ends the process at once.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
	p.log.Close()
}

// drop ends the process and removes its data.
func (b *bench) drop(p *process) {
	p.kill()
	if !b.keep {
		check(os.RemoveAll(p.dir))
	}
}

func dialAddr() (net.Conn, error) { return net.DialTimeout("tcp", brokerAddr, time.Second) }
