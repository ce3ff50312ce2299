// Package conformance keeps docs/conformance.md correct. Its tests read docs/requirements.md, the
// citations in code and tests, and the page's explanations for requirements without a test.
package conformance
