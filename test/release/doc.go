// Package release looks at what "make release" has left in dist/, and uses it: "make release-test" runs
// its tests, which have the build tag "release". What they need of Debian, deploy/release/deps.sh
// installs; they need to be root on Linux.
package release
