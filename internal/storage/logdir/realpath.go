package logdir

import (
	"fmt"
	"path/filepath"
	"syscall"

	"samsa/internal/base/vfs"
)

// realPath is a text that two names of one directory share: device and inode where the file
// system has them (so symbolic links and bind mounts are seen through), else the cleaned path.
func realPath(fsys vfs.FS, path string) (string, bool) {
	info, err := fsys.Stat(path)
	if err != nil {
		return "", false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino), true
	}
	abs, err := filepath.Abs(path)
	return abs, err == nil
}
