"""Figures to look at: plots, and pages of plots and tables."""
