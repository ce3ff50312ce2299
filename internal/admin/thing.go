package admin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// shows returns the operation that shows the object of a change: a GET at its path, or at the
// nearest path above it with a parameter. It may be nil.
func (o Operations) shows(v Verb) Verb {
	for path := v.Spec().Path; strings.Contains(path, "{"); path = path[:strings.LastIndex(path, "/")] {
		for _, other := range o {
			if s := other.Spec(); !s.Changes() && s.Path == path {
				return other
			}
		}
	}
	return nil
}

// Shown returns the operation that shows the object of a change, with a pointer to its input. The
// input has the path parameters of the change. It returns nil if the object cannot be shown.
func (o Operations) Shown(v Verb, in reflect.Value) (show Verb, about any) {
	if show = o.shows(v); show == nil {
		return nil, nil
	}
	to := reflect.New(show.Input())
	for _, f := range reflect.VisibleFields(show.Input()) {
		name := jsonName(f)
		if name == "" || !strings.Contains(show.Spec().Path, "{"+name+"}") {
			continue
		}
		for _, from := range reflect.VisibleFields(v.Input()) {
			if jsonName(from) == name {
				to.Elem().FieldByIndex(f.Index).Set(in.FieldByIndex(from.Index))
			}
		}
	}
	return show, to.Interface()
}

// thing returns a digest of the current state of the object of a change, without the time of its
// last use. It returns "" if the object cannot be shown.
func (s *Service) thing(ctx context.Context, v Verb, in reflect.Value) (string, error) {
	show, about := s.Operations.Shown(v, in)
	if show == nil {
		return "", nil
	}
	out := reflect.New(show.Output())
	err := show.run(ctx, s, about, out.Interface())
	if v.Spec().Early && (err == nil || errors.Is(err, ErrNotFound)) {
		return s.earlyThing(ctx, v.Spec(), in, out.Interface(), err)
	}
	if err != nil {
		return "", err
	}
	return digest(out.Interface())
}

// earlyThing is thing for an operation whose object may not exist yet. Its digest covers the
// account, if any, and the invitation of the name. missing is the error for an account that does
// not exist.
func (s *Service) earlyThing(ctx context.Context, o Spec, in reflect.Value, shown any, missing error) (string, error) {
	now := struct {
		Thing      any         `json:"thing"`
		Invitation *Invitation `json:"invitation"`
		Made       time.Time   `json:"made"`
	}{}
	if missing == nil {
		now.Thing = shown
	}
	switch l, err := s.invitation(ctx, textOf(in, "name")); {
	case err == nil:
		now.Invitation = &Invitation{Name: l.Name, Role: string(l.Role), Mail: l.Mail, Groups: l.Groups}
		now.Made = l.CreatedAt.UTC()
	case !errors.Is(err, storage.ErrNotFound):
		return "", err
	case o.Takes && missing != nil:
		return "", missing // there is nothing to take away
	}
	return digest(now)
}

// digest returns the digest of v as JSON, without the members that change by themselves.
func digest(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	if raw, err = json.Marshal(unused(tree)); err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// unused returns JSON without the members that record the last use, because they change by
// themselves.
func unused(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unused(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if strings.HasPrefix(name, "last_") {
				delete(v, name)
				continue
			}
			v[name] = unused(member)
		}
	}
	return v
}
