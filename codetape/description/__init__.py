"""Sample data: from a path or a data frame to a file in the sandbox and words in a prompt."""

from codetape.description.samples import samples_of

__all__ = ["samples_of"]
