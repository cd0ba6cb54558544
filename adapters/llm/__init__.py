"""Models: one file per way of getting an answer."""
