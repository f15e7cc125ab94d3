"""What operators run and read: the daemon, `doctor`, `status`, `backup`, and fingerprints in and out of Parquet.

`selectors` proposes the selectors of pages, for `neardup init` and `neardup scan`.
"""
