// Package attempt explains what became of each attempt of a client to get a token: the requests from
// discovery to the first tool call, what they were answered, and a verdict that names the step that
// failed, whose fault it is, and what to do next.
//
// A Recorder takes the steps of requests as they end, and stores them in batches. What a step holds is
// chosen by an allow-list: of what is secret it has a keyed digest, or that it was there. Steps are
// joined to attempts when they are read (Join), so that it does not matter which of several servers has
// stored which, or in what order. Judge is a pure function of an attempt's steps and the time.
package attempt
