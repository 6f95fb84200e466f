"""What a reader sees: figures, reports, pages, the overview, exports."""
