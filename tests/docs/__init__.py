"""Documentation, examples and the notebook do what they say."""
