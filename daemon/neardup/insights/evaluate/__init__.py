"""How much is found, of copies made for the purpose and of pairs that people labelled."""
