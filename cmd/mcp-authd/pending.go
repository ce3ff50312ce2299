package main

import "github.com/spf13/cobra"

func newLoginCommand() *cobra.Command { return &cobra.Command{Use: "login", Hidden: true} }
func newCheckCommand() *cobra.Command { return &cobra.Command{Use: "check", Hidden: true} }
