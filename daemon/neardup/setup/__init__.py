"""What `neardup init` and `neardup demo` write: configurations, lists of a folder's pages, and the bundled samples."""
