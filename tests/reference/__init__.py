"""The reference cases: recorded sessions of another system, run through the real agent."""
