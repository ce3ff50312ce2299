// Package ramdisk finds a file system in memory for databases of tests. They need not last, and the disk
// would be what most tests wait for.
package ramdisk
