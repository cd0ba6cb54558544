"""The numbers that the design must keep, measured against rivals and limits: `make bench`."""
