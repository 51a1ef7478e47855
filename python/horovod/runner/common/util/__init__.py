"""Modules of the runner that scripts import from."""
