// Package chart tests the Helm chart of deploy/helm. What helm and kubeconform do is tested with the build tag
// release, since both are compiled for minutes: make release-test.
package chart
