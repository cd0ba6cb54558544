"""Event stores: one file per place where a tape can lie."""
