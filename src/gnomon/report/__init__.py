"""Reports read results only: what is shown was computed when the run was made, and is never computed again here."""
