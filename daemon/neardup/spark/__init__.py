"""neardup on Apache Spark: the same core on a cluster.

     listing or table -> reading -> fingerprints -> fingerprint_pairs, passage_pairs -> verification -> flags
                                                                                           |
                                                                     counts, stories, clusters

Each stage reads and writes folders of Parquet.  What decides is in neardup.core; here is only how rows travel to it.
"""
