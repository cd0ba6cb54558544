"""Pure rules: events, requests, the folded session, the machine and the workflows."""
