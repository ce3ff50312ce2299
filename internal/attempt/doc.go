// Package attempt explains each attempt of a client to get a token, from discovery to the first
// tool call. An attempt lists its requests and their answers. A verdict names the step that failed,
// who must fix it, and how.
//
// A Recorder receives steps when their requests end, and stores them in batches. An allow-list
// decides which data a step contains. Secrets are reduced to a keyed digest or to their presence.
// Join combines steps to attempts when they are read, so it does not matter which replica stored a
// step, or in which order. Judge is a pure function of an attempt's steps and the time.
package attempt
