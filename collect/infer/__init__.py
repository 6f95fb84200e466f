"""The inference: summaries, comparisons, averages and claims, with their intervals."""
