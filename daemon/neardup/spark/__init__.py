"""neardup on Apache Spark: the same core on a cluster.

    listing or table -> reading -> fingerprints -> candidates -> verification -> flags -> results
                                                                                             |
                                                                            clusters, members, stories that copy

Each stage of a `job` reads and writes folders of Parquet.  What decides is in neardup.core; here is only how rows
travel to it.  The libraries of Spark are an extra, and only the command `neardup spark` loads this package.
"""
