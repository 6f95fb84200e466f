"""What the runs tell: summaries, comparisons, averages, claims, with their intervals."""
