package acme

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog returns certmagic's logger. It drops debug entries and writes the others at debug level;
// the manager logs important events itself.
func newLog(to *slog.Logger) *zap.Logger { return zap.New(core{to}) }

// core writes zap entries to slog.
type core struct{ to *slog.Logger }

// Enabled implements zapcore.Core.
func (c core) Enabled(level zapcore.Level) bool {
	return level >= zapcore.InfoLevel && c.to.Enabled(context.Background(), slog.LevelDebug)
}

// With implements zapcore.Core.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.to.With(attributes(fields)...)}
}

// Check implements zapcore.Core.
func (c core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.to.Debug("acme: "+e.Message, attributes(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (core) Sync() error { return nil }

// attributes returns the fields about the certificate or attempt.
func attributes(fields []zapcore.Field) (out []any) {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		switch f.Key {
		case "identifier", "challenge_type", "ca", "error", "attempt", "retrying_in":
			f.AddTo(values)
			out = append(out, f.Key, values.Fields[f.Key])
		}
	}
	return out
}
