"""What is computed of texts and fingerprints: no I/O, no clock; a cluster's workers import only this."""
