"""A case file: one sealed archive of a run and the runs it belongs with, to be opened in another installation."""
