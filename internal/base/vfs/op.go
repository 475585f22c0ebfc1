package vfs

import "fmt"

// OpKind names a call of FS or File.
type OpKind uint8

const (
	OpOpen OpKind = iota // OpenFile without O_CREATE
	OpCreate
	OpMkdir // Mkdir and MkdirAll
	OpRemove
	OpRemoveAll
	OpRename
	OpReadDir
	OpStat
	OpSyncDir
	OpLock
	OpSpace
	OpRead
	OpWrite // WriteAt and WriteV
	OpTruncate
	OpSync
	OpSize
	OpClose
	OpSend // never made by this package: what a sendfile reports through Report
	numOps
)

var opNames = [numOps]string{"open", "create", "mkdir", "remove", "removeall", "rename", "readdir", "stat",
	"syncdir", "lock", "space", "read", "write", "truncate", "sync", "size", "close", "send"}

func (k OpKind) String() string {
	if k < numOps {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// Op is one call, as wrappers see it.
type Op struct {
	Kind OpKind
	Path string
	To   string // OpRename: the new name
	Off  int64  // OpRead, OpWrite: the position; OpTruncate: the new size
	Len  int    // OpRead, OpWrite: bytes asked for
}

func (o Op) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s %s", o.Path, o.To)
	case OpRead, OpWrite:
		return fmt.Sprintf("%s %s %d+%d", o.Kind, o.Path, o.Off, o.Len)
	case OpTruncate:
		return fmt.Sprintf("truncate %s %d", o.Path, o.Off)
	}
	return o.Kind.String() + " " + o.Path
}
