"""The tool maker's rules, beside its table in states/toolmaker.py."""
