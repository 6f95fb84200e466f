"""The presentation: figures, reports, pages, the overview, exports."""
