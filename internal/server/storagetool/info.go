package storagetool

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/logdir"
)

// Info is `info`: what the directories of a node hold and what is wrong with them (J-32). It
// returns true when nothing is.
func Info(out io.Writer, fsys vfs.FS, dirs []string, metadataDir string) bool {
	var found, problems []string
	var first *logdir.MetaProperties
	var ids []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, path := range uniqueSorted(dirs, metadataDir) {
		info, err := fsys.Stat(path)
		if err != nil {
			if exists, xerr := vfs.Exists(fsys, path); xerr == nil && !exists {
				problem("%s does not exist", path)
			} else {
				problem("%s cannot be read: %v", path, err)
			}
			continue
		}
		if !info.IsDir() {
			problem("%s is not a directory", path)
			continue
		}
		found = append(found, path)
		d := logdir.ReadEnsemble(fsys, []string{path}, "").Dirs[0]
		switch d.State {
		case logdir.Unformatted:
			problem("%s is not formatted.", path)
			continue
		case logdir.Unreadable:
			problem("Error loading %s: %s", filepath.Join(path, logdir.MetaPropertiesFile), strings.TrimPrefix(d.Err.Error(),
				fmt.Sprintf("Error while reading meta.properties file %s: ", filepath.Join(path, logdir.MetaPropertiesFile))))
			continue
		}
		if d.Props.HasDirectoryID {
			ids = append(ids, fmt.Sprintf("  %s: %s", path, d.Props.DirectoryID))
		} else {
			ids = append(ids, fmt.Sprintf("  %s: none yet, the next start gives it one", path))
		}
		switch {
		case first == nil:
			first = &d.Props
		case !equal(first.ClusterID, d.Props.ClusterID):
			problem("Mismatched cluster IDs between storage directories.")
		case !equal(first.NodeID, d.Props.NodeID):
			problem("Mismatched node IDs between storage directories.")
		}
	}
	if first != nil && first.Version == 0 {
		problem("The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are formatted for legacy mode.")
	}
	block := func(title string, lines []string, plural string) {
		if len(lines) == 0 {
			return
		}
		if len(lines) > 1 {
			title = plural
		}
		fmt.Fprintln(out, title)
		for _, l := range lines {
			fmt.Fprintf(out, "  %s\n", strings.TrimPrefix(l, "  "))
		}
		fmt.Fprintln(out)
	}
	block("Found log directory:", found, "Found log directories:")
	if first != nil {
		known := first.Known()
		keys := make([]string, 0, len(known))
		for k := range known {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for i, k := range keys {
			keys[i] = k + "=" + known[k]
		}
		fmt.Fprintf(out, "Found metadata: {%s}\n\n", strings.Join(keys, ", "))
	}
	block("Directory ID:", ids, "Directory IDs:")
	block("Found problem:", problems, "Found problems:")
	return len(problems) == 0
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func uniqueSorted(dirs []string, metadataDir string) []string {
	all := slices.Clone(dirs)
	if metadataDir != "" {
		all = append(all, metadataDir)
	}
	sort.Strings(all)
	return slices.Compact(all)
}
