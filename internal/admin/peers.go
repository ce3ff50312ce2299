package admin

import "strings"

// peerFindings reports whether replicas can forward session requests to each other (RU-08).
func (s *Service) peerFindings(running []Replica) (f findings) {
	if len(running) < 2 {
		return nil
	}
	byID := map[string]Replica{}
	var closed []string
	open := 0
	for _, r := range running {
		byID[r.ID] = r
		if r.peerAddress == "" {
			closed = append(closed, r.called())
		} else {
			open++
		}
	}
	var broken []string
	for _, r := range running {
		for line := range strings.Lines(r.unreached) {
			id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
			if to, ok := byID[id]; ok {
				broken = append(broken, r.called()+" does not reach "+to.called()+" at "+to.peerAddress+": "+why)
			}
		}
	}
	if len(broken) > 0 {
		f.add("replicas", LevelWarning, "let replicas reach that port of each other, or set peers.listen and "+
			"peers.address; sessions of programs do not work at a replica that does not reach their holder",
			"replicas cannot pass requests to each other: %s", some(broken))
	}
	programs := s.Config != nil && s.Config.HasPrograms()
	if len(closed) > 0 && (open > 0 || programs) {
		f.add("replicas", LevelWarning, "see its log for the reason, set peers.listen on each, and finish an upgrade; until "+
			"then the proxy has to send each client to the same replica",
			"sessions of programs work there alone, as these replicas take no requests from others: %s", some(closed))
	}
	return f
}
