// Command bench does the same work on samsa, on Apache Kafka and on the floor, in turn, and prints
// ratios.
//
// Kind: driver. Each workload runs alone, the contenders alternate, and the figures are medians over
// the rounds. Throughput comes with the broker's CPU seconds per gigabyte (from /proc), its peak
// memory and the 99th percentile. The floor does the least any broker can: it reads the frame, checks
// the checksum, writes the file and answers, and it sends files with sendfile. It shows the machine's limit.
//
// The load comes from raw requests encoded before the clock starts, so that the client costs little.
//
//	go run ./bench                          every workload, three rounds
//	go run ./bench -w produce64k,fetch -rounds 5
//	go run ./bench -list
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		runFloor(os.Args[2:])
		return
	}
	names := flag.String("w", "", "workloads, comma separated; all when empty")
	who := flag.String("c", "floor,samsa,kafka", "contenders, comma separated")
	rounds := flag.Int("rounds", 3, "rounds per workload and contender")
	seconds := flag.Float64("seconds", 5, "length of a throughput measurement")
	warm := flag.Float64("warm", 5, "seconds of the same load before a measurement; more until the node has had twice that of CPU")
	jars := flag.String("jars", os.Getenv("SAMSA_PEERS"), "Apache Kafka's jars")
	samsa := flag.String("samsa", "bin/samsa", "the samsa binary")
	out := flag.String("out", "", "append the table to this file as Markdown")
	keep := flag.Bool("keep", false, "leave the directories of the nodes behind, to look at")
	port := flag.Int("port", 23192, "where the nodes listen, on loopback; the two ports behind it are used too")
	list := flag.Bool("list", false, "list the workloads")
	flag.Parse()
	if *list {
		for _, w := range workloads {
			fmt.Printf("%-16s %s\n", w.name, w.what)
		}
		return
	}
	setPort(*port)
	work, err := os.MkdirTemp("", "samsa-bench-")
	check(err)
	if atExit = func() { os.RemoveAll(work) }; *keep {
		atExit = func() { fmt.Fprintln(os.Stderr, "kept:", work) }
	}
	defer atExit()
	b := &bench{work: work, jars: *jars, samsa: *samsa, length: inSeconds(*seconds), warm: inSeconds(*warm), keep: *keep}
	var tables []string
	for _, w := range selected(*names) {
		t := b.run(w, strings.Split(*who, ","), *rounds)
		fmt.Println(t)
		tables = append(tables, t)
	}
	if *out != "" {
		f, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		check(err)
		fmt.Fprintf(f, "\n## %s, %d cores, `go run ./bench %s`\n\n", time.Now().Format("2006-01-02"), runtime.NumCPU(), strings.Join(os.Args[1:], " "))
		for _, t := range tables {
			fmt.Fprintln(f, t)
		}
		check(f.Close())
	}
}

func inSeconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// bench holds what all measurements share.
type bench struct {
	work, jars, samsa string
	length, warm      time.Duration
	serial            int
	keep              bool
}

// atExit removes what was written; running nodes die with this process.
var atExit = func() {}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		atExit()
		os.Exit(1)
	}
}

func (b *bench) dir(name string) string {
	b.serial++
	d := filepath.Join(b.work, fmt.Sprintf("%s-%d", name, b.serial))
	check(os.MkdirAll(d, 0o755))
	return d
}

// workloads in the order they run.
var workloads = slices.Concat(produceWorkloads, fetchWorkloads, latencyWorkloads, footprintWorkloads, partitionWorkloads)

// workload is one piece of work; measure does it once on a contender and returns figures by name.
type workload struct {
	name, what string
	figures    []figure
	floor      bool                                           // the floor can do it
	measure    func(b *bench, c contender) map[string]float64 // nil: nothing to measure here
}

// figure is one column of a table.
type figure struct {
	name, unit string
	more       bool // more is better
}

func selected(names string) []workload {
	if names == "" {
		return workloads
	}
	var out []workload
	for _, name := range strings.Split(names, ",") {
		found := false
		for _, w := range workloads {
			if w.name == name {
				out, found = append(out, w), true
			}
		}
		if !found {
			check(fmt.Errorf("no workload %q; -list shows them", name))
		}
	}
	return out
}

// run measures a workload on each contender, alternating, and lays the medians out.
func (b *bench) run(w workload, who []string, rounds int) string {
	results := map[string]map[string][]float64{}
	begin, before := time.Now(), load()
	for round := range rounds {
		for _, name := range who {
			if name == "floor" && !w.floor {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s: round %d, %s\n", w.name, round+1, name)
			got := w.measure(b, contenderOf(name))
			if got == nil {
				continue
			}
			if results[name] == nil {
				results[name] = map[string][]float64{}
			}
			for k, v := range got {
				results[name][k] = append(results[name][k], v)
			}
		}
	}
	var t strings.Builder
	about := fmt.Sprintf("%s\n\n%d rounds in %s; load average of the machine %s before, %s after.", w.what, rounds, time.Since(begin).Round(time.Second), before, load())
	fmt.Fprintf(&t, "### %s\n\n%s\n\n| | %s |\n| --- |%s\n", w.name, about, strings.Join(columns(w.figures), " | "), strings.Repeat(" --- |", len(w.figures)))
	for _, name := range who {
		if results[name] == nil {
			continue
		}
		fmt.Fprintf(&t, "| %s |", name)
		for _, f := range w.figures {
			fmt.Fprintf(&t, " %s |", human(median(results[name][f.name])))
		}
		fmt.Fprintln(&t)
	}
	if results["samsa"] != nil && results["kafka"] != nil {
		fmt.Fprint(&t, "| **samsa / kafka** |")
		for _, f := range w.figures {
			k := median(results["kafka"][f.name])
			if k == 0 {
				fmt.Fprint(&t, " – |")
				continue
			}
			fmt.Fprintf(&t, " **%.3f** |", median(results["samsa"][f.name])/k)
		}
		fmt.Fprintln(&t)
	}
	return t.String()
}

func columns(fs []figure) []string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%s (%s)", f.name, f.unit))
	}
	return out
}
