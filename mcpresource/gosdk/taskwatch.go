package gosdk

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// watch sends beats for the task. It ends the task after its time to live, when its caller may no
// longer call the tool, or when another replica has ended it.
func (j *job) watch() {
	tick := time.NewTicker(j.tasks.o.beat)
	defer tick.Stop()
	end := time.NewTimer(j.plan.ttl)
	defer end.Stop()
	for {
		select {
		case <-j.over:
			return
		case <-end.C:
			j.stop(errTaskExpired)
			return
		case <-tick.C:
		}
		if err := j.still(); err != nil {
			j.stop(err)
			return
		}
		err := j.record(func(s *taskState) { s.Alive = j.tasks.o.alive(j.tasks.o.now()) })
		switch {
		case errors.Is(err, errTaskCancelled):
			j.cancel(err)
			return
		case err != nil:
			j.o.Logger.ErrorContext(j.ctx, "the store of tasks failed", "error", err)
		}
	}
}

// still checks the caller again. It returns nil if that is not possible now.
func (j *job) still() error {
	j.mu.Lock()
	p := j.caller
	j.mu.Unlock()
	if now, end := j.tasks.o.now(), p.ExpiresAt; !end.IsZero() && !now.Before(end) {
		if wait := j.tasks.o.Unattended; wait >= 0 && now.Sub(end) >= wait {
			return errTaskRevoked
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(mcpresource.NewContext(context.WithoutCancel(j.ctx), p), taskWrite)
	defer cancel()
	err := j.guard.Recheck(mcpresource.Begun(ctx), j.ops[0])
	if err != nil && !errors.Is(err, mcpresource.ErrUnavailable) {
		return errTaskRevoked
	}
	return nil
}

// vouched stores the caller of a later request if its token lasts longer.
func (j *job) vouched(p *mcpresource.Principal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.ExpiresAt.After(j.caller.ExpiresAt) {
		j.caller = p
	}
}

// stop ends a task, even if its tool ignores that.
func (j *job) stop(why error) {
	if j.isTask() {
		err := j.record(func(s *taskState) {
			switch why {
			case errTimeout:
				if j.outcomeIs(s, tookTooLong(j.plan.limit)) != nil {
					s.fail(errTaskLost)
				}
			case errTaskRevoked:
				s.cancel("The access with which this task was begun has ended.")
			case errTaskExpired:
				s.fail(&jsonrpc.Error{
					Code: jsonrpc.CodeInternalError, Message: "The task took longer than its time to live.",
				})
			default:
				s.fail(errTaskLost)
			}
		})
		if err != nil && !errors.Is(err, errTaskCancelled) {
			j.o.Logger.ErrorContext(j.ctx, "the store of tasks failed", "error", err)
		}
	}
	j.cancel(why)
}
