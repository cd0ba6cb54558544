"""Where tapes are kept: SQLite, and memory for tests."""
