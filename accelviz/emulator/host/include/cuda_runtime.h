// For files that include it: all that a kernel has of it is there without. Nor does the emulator
// have the functions for the host.
