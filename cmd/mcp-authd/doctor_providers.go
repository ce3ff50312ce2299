package main

import "context"

func (d *doctor) providers(ctx context.Context) {}
func (d *doctor) brokers(ctx context.Context)   {}
