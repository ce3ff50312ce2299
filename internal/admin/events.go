package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// EventReceiver describes a receiver of security events and its queue.
type EventReceiver struct {
	ID         string    `json:"id"`
	Configured bool      `json:"configured"`
	Waiting    int       `json:"waiting"`
	Oldest     time.Time `json:"oldest,omitzero" jsonschema:"time of the oldest queued event"`
	Tries      int64     `json:"tries" jsonschema:"delivery attempts of the oldest event"`
	Failed     string    `json:"failed" jsonschema:"why the last delivery of the oldest event failed"`
}

// ReceiverID names a receiver.
type ReceiverID struct {
	Receiver string `json:"receiver" jsonschema:"the id of the receiver, under events.receivers"`
}

// EventSent is an event in the queue of a receiver.
type EventSent struct {
	ID       string `json:"id" jsonschema:"jti of the event"`
	Receiver string `json:"receiver"`
}

// Operations on receivers of security events.
var (
	EventsList = define(Spec{
		Name: "events list", Method: "GET", Path: "/events/receivers", Roles: reading,
		Summary: "List receivers of security events, and their queues",
		Details: "Lists the receivers of security events (events.receivers). For each one it shows the queued events,\n" +
			"the age of the oldest, and why its last delivery failed. A receiver that was removed from the\n" +
			"configuration stays in the list while it has queued events, or if a server had it within the last\n" +
			"seven days.",
	}, (*Service).listReceivers)
	EventsTest = define(Spec{
		Name: "events test", Method: "POST", Path: "/events/receivers/{receiver}/test",
		Summary: "Send a verification event to a receiver",
		Details: "Queues a verification event for a receiver, behind its other events; a running server sends it. Once\n" +
			"the receiver has the event, the server logs securityevent.sent with the returned id. If it does not\n" +
			"arrive, events list shows why.",
	}, (*Service).testReceiver)
)

func (s *Service) listReceivers(ctx context.Context, _ None) (Page[EventReceiver], error) {
	waiting, err := s.Store.Backlogs(ctx, s.Now())
	if err != nil {
		return Page[EventReceiver]{}, err
	}
	out := []EventReceiver{}
	for _, b := range waiting {
		out = append(out, EventReceiver{
			ID: b.Receiver, Waiting: b.Waiting, Oldest: b.Oldest, Tries: b.Tries, Failed: b.Failed,
		})
	}
	for _, r := range s.Config.Events.Receivers {
		i := slices.IndexFunc(out, func(v EventReceiver) bool { return v.ID == r.ID })
		if i < 0 {
			out, i = append(out, EventReceiver{ID: r.ID}), len(out)
		}
		out[i].Configured = true
	}
	return Page[EventReceiver]{Items: out}, nil
}

func (s *Service) testReceiver(ctx context.Context, in ReceiverID) (EventSent, error) {
	d := storage.Delivery{
		ID: secrets.ID("set_"), Receiver: in.Receiver, Kind: storage.KindVerification, Detail: []byte("{}"),
		At: s.Now(),
	}
	err := s.Store.PutDelivery(ctx, d)
	if errors.Is(err, storage.ErrNotFound) {
		return EventSent{}, fault(ErrNotFound, "no server has named a receiver %q; is it under events.receivers, "+
			"and was serve started since?", in.Receiver)
	}
	return EventSent{ID: d.ID, Receiver: d.Receiver}, err
}
