"""Contract suites that every adapter passes, and the parts that tests are built from."""
