// Package web holds the templates, texts and assets of the pages that users see. Package
// internal/pages renders them.
package web

import "embed"

// Files holds the files of this folder: templates/*.html, text/LANGUAGE/*.json and assets/*.
//
//go:embed templates/*.html text/*/*.json assets
var Files embed.FS
