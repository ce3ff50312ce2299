// Package site builds the site of the manual as "make docs" does, and reads it: as files, and in a real
// Chromium. Its tests have the build tag "release", since compiling Hugo takes minutes.
package site
