"""Sandboxes: one file per way of running code that nobody trusts."""
