"""Measures recall and precision: on copies that it makes itself, or on pairs that people labelled."""
