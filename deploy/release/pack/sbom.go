package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// sbom writes an SPDX document (2.3) once more, with the two things replaced that differ from one run of
// syft to the next: the time, and the random part of the namespace, which becomes the hash of the rest.
func sbom(from, to string, at time.Time) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	creation, ok := doc["creationInfo"].(map[string]any)
	packages, _ := doc["packages"].([]any)
	if !ok || doc["spdxVersion"] == nil || len(packages) < 2 {
		return errors.New("it is no SPDX document that lists packages")
	}
	creation["created"] = at.Format(time.RFC3339)
	name, _ := doc["name"].(string)
	delete(doc, "documentNamespace")
	rest, err := json.Marshal(doc) // with its keys in order
	if err != nil {
		return err
	}
	doc["documentNamespace"] = fmt.Sprintf("https://github.com/mcp-authd/mcp-authd/spdx/%s-%x", name, sha256.Sum256(rest))
	out, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(out, '\n'), 0o644)
}
