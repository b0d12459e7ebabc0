"""What is measured: one file per family of quantities, small classes over pure functions."""
