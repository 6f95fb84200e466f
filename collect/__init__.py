"""The study of fork-vs-thread: plan, runs, summary, comparisons, claims, figures, report.

Each stage reads the tables that the stage before it wrote; only `measure` measures.
"""
