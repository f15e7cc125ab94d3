"""HTML pages of tables and plots; the plots need matplotlib, which is an extra."""
