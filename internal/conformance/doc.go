// Package conformance keeps docs/conformance.md true: its tests read docs/requirements.md, the
// citations in code and tests, and what the page says of the requirements that have no test.
package conformance
