package kerr

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestCodesAreDense(t *testing.T) {
	for i, e := range all {
		if int(e.Code) != i+1 || ForCode(e.Code) != e {
			t.Errorf("entry %d is %s with code %d", i, e.Name, e.Code)
		}
	}
	for code, want := range map[int16]*Error{0: nil, -1: UnknownServerError, -2: UnknownServerError, 137: UnknownServerError, 32767: UnknownServerError} {
		if got := ForCode(code); got != want {
			t.Errorf("ForCode(%d) = %v", code, got)
		}
	}
}

func TestOf(t *testing.T) {
	with := InvalidConfig.With("retention.ms is %d", -2)
	if with.Error() != "retention.ms is -2" || !errors.Is(with, InvalidConfig) || errors.Is(with, InvalidRequest) {
		t.Errorf("With: %v", with)
	}
	wrapped := KafkaStorageError.Wrap(io.ErrUnexpectedEOF)
	if !errors.Is(wrapped, KafkaStorageError) || !errors.Is(wrapped, io.ErrUnexpectedEOF) || KafkaStorageError.Wrap(nil) != nil {
		t.Errorf("Wrap: %v", wrapped)
	}
	for name, c := range map[string]struct {
		err  error
		code int16
	}{
		"nil":          {nil, 0},
		"plain":        {io.EOF, -1},
		"itself":       {NotCoordinator, 16},
		"with":         {with, 40},
		"wrapped_with": {fmt.Errorf("topic a: %w", with), 40},
		"typed_nil":    {(*Error)(nil), -1},
	} {
		if got := Code(c.err); got != c.code {
			t.Errorf("%s: code %d, want %d", name, got, c.code)
		}
	}
}
