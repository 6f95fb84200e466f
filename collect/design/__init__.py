"""What is measured: factors, study files and the order of the runs."""
