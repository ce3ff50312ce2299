// Package site builds the site of the manual like "make docs". It reads the site as files and in a
// real Chromium. Its tests have the build tag "release", because compiling Hugo takes minutes.
package site
