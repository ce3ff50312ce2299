// Package ramdisk finds a file system in memory for the databases of tests. They need not be durable, and
// on a disk most tests would wait for it.
package ramdisk
