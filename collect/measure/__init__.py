"""The stage that measures."""
