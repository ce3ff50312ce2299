// Command site finishes the manual that Hugo has made: it writes the index of its search, and fails when
// something is wrong with a page: a link that leads nowhere, a request to another host, an element that HTML
// does not have. Its arguments are the folder with the pages, the root of the repository, and the URLs under
// which both are public.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: site PAGES REPOSITORY PUBLIC_URL REPOSITORY_URL")
		os.Exit(2)
	}
	if err := finish(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// finish checks the pages, and writes the index beside them.
func finish(folder, repository, public, repositoryURL string) error {
	pages, err := readPages(folder)
	if err != nil {
		return err
	}
	c := checker{folder: folder, repository: repository, public: public, repositoryURL: repositoryURL, pages: pages}
	bad, err := c.check()
	if err != nil {
		return err
	}
	for _, finding := range bad {
		fmt.Fprintln(os.Stderr, finding)
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d things are wrong with the pages", len(bad))
	}
	plain, packed, err := writeIndex(folder, pages)
	if err != nil {
		return err
	}
	fmt.Printf("%d pages, %d links; the index of the search has %d kB, %d kB compressed\n",
		len(pages), c.links, plain/1000, packed/1000)
	return nil
}
