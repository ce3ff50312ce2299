// Package chart tests the Helm chart of deploy/helm. Tests that run helm and kubeconform have the
// build tag release, because compiling these programs takes minutes: make release-test.
package chart
