package protocol

// schemaField describes a field to the tests.
type schemaField struct {
	name                   string
	typ                    string
	lo, hi, nullLo, nullHi int16
	tag                    int
	ignorable              bool
	nullDefault            bool
}

// schemaMessage describes a top-level message to the tests.
type schemaMessage struct {
	name, kind, family string
	key                int
	lo, hi, flex       int16
	make               func() Message
}
