"""The only code that touches a model, a container, a disk, a clock or a random number."""
