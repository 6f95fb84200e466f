"""The design: factors, study files and the order of the runs."""
