"""What operators run and read: the daemon, `doctor`, `status`, `backup`, and fingerprints in and out of Parquet.

`new_folder` and `selectors` are what `neardup init` and `neardup demo` write.
"""
