"""HumanEval's problems as runs in a sandbox: does what is right pass, and what is wrong fail?"""
