"""Embedding: vectors of the works and of new stories, made here or imported."""
