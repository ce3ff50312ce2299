package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// Branding configures the look and the texts of the pages.
type Branding struct {
	// Name is the server's name for itself.
	Name string `yaml:"name"`
	// Logo is a file with an SVG or PNG image.
	Logo   string `yaml:"logo"`
	Accent Accent `yaml:"accent"`
	// Texts is a directory with texts that replace ours, and with additional languages.
	Texts string `yaml:"texts"`
}

// Accent is the color of buttons and links, as #rrggbb.
type Accent struct {
	Light string `yaml:"light"`
	Dark  string `yaml:"dark"`
}

// Pages returns the branding for the pages. It reads the files now, so that later changes of them
// do not affect a running server.
func (b Branding) Pages() (pages.Branding, error) {
	out := pages.Branding{AccentLight: b.Accent.Light, AccentDark: b.Accent.Dark}
	if b.Logo != "" {
		info, err := os.Stat(b.Logo)
		switch {
		case err != nil:
			return out, fmt.Errorf("%w: %w", pages.ErrLogo, err)
		case info.Size() > pages.MaxLogo || !info.Mode().IsRegular():
			return out, fmt.Errorf("%w: %s is not a file of at most %d bytes", pages.ErrLogo, b.Logo, pages.MaxLogo)
		}
		if out.Logo, err = os.ReadFile(b.Logo); err != nil {
			return out, fmt.Errorf("%w: %w", pages.ErrLogo, err)
		}
	}
	if b.Texts != "" {
		if info, err := os.Stat(b.Texts); err != nil || !info.IsDir() {
			return out, fmt.Errorf("%w: %s is not a directory", pages.ErrTexts, b.Texts)
		}
		out.Texts = os.DirFS(b.Texts)
	}
	return out, out.Check()
}

func (c *Config) validateBranding(add func(string, string, ...any)) {
	_, err := c.Branding.Pages()
	for _, part := range []error{pages.ErrLogo, pages.ErrAccentLight, pages.ErrAccentDark, pages.ErrTexts} {
		for _, found := range causes(err) {
			if errors.Is(found, part) {
				add("branding."+part.Error(), "%s", strings.TrimPrefix(found.Error(), part.Error()+": "))
			}
		}
	}
}

// causes returns the errors that were joined.
func causes(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if all := joined.Unwrap(); len(all) > 0 && !isPart(all[0]) {
			return all
		}
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func isPart(err error) bool {
	return err == pages.ErrLogo || err == pages.ErrAccentLight || err == pages.ErrAccentDark || err == pages.ErrTexts
}
