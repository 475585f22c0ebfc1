package api

import (
	"log/slog"
	"strings"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
)

// This node has one logger, by Kafka's name for it. Kafka's levels are those of log4j.
const rootLogger = "root"

var logLevels = map[string]slog.Level{
	"TRACE": slog.LevelDebug, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn,
	"ERROR": slog.LevelError, "FATAL": slog.LevelError,
}

func (s *Server) describeLoggers(names []string) []config.Entry {
	if names != nil && !contains(names, rootLogger) {
		return nil
	}
	level := "INFO"
	if s.LogLevel != nil {
		level = s.LogLevel.Level().String()
	}
	return []config.Entry{{Name: rootLogger, Value: &level, Source: config.SourceDynamicBrokerLogger}}
}

// alterLoggers sets log levels; a deleted one goes back to INFO.
func (s *Server) alterLoggers(ops []config.Op, validateOnly bool) error {
	level := slog.LevelInfo
	for _, op := range ops {
		if op.Name != rootLogger {
			return kerr.InvalidConfig.With("Logger %s does not exist!", op.Name)
		}
		switch op.Type {
		case config.OpSet:
			l, ok := logLevels[strings.ToUpper(*op.Value)]
			if !ok {
				return kerr.InvalidConfig.With("Cannot set the log level of %s to %s as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN", op.Name, *op.Value)
			}
			level = l
		case config.OpDelete:
			return kerr.InvalidRequest.With("Removing the log level of the %s logger is not allowed", op.Name)
		default:
			return kerr.InvalidRequest.With("Log levels can be set or removed, not appended to or subtracted from")
		}
	}
	if !validateOnly && len(ops) > 0 && s.LogLevel != nil {
		s.LogLevel.Set(level)
		s.Log.Warn("log level changed", "level", level)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
