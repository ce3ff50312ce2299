// Package process adapts this process to its surroundings: Hide isolates it from other processes of
// the same user, and BecomeInit lets it run without an init in a container.
package process
