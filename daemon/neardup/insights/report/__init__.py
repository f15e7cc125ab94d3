"""A report for operators: what the ledger and the index hold, and how the last run went, in plots and tables."""
