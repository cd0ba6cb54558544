"""Replay, fork, diff, export and import of tapes."""
