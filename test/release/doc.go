// Package release tests the files of "make release" in dist/. "make release-test" runs the tests,
// which have the build tag "release". deploy/release/deps.sh installs the required Debian packages.
// The tests require root on Linux.
package release
