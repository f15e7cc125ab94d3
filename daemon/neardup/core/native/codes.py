"""Binds codes.c: the scan for the nearest binary codes."""

from ctypes import c_int64

import numpy as np
import numpy.typing as npt

from neardup.core.native import INT64, UINT16, UINT64, bind, check_code

_scan = bind("nd_scan_codes", UINT64, c_int64, UINT64, *[c_int64] * 4, INT64, UINT16)


def scan(
    queries: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint64],
    first: int,
    places: npt.NDArray[np.int64],
    distances: npt.NDArray[np.uint16],
) -> None:
    """See neardup.meaning.codes.scan."""
    (n_queries, words), (n, words_of_codes), most = queries.shape, codes.shape, places.shape[1]
    if words != words_of_codes or not places.shape == distances.shape == (n_queries, most):
        raise ValueError("the codes and the queries, or the rows of the nearest codes, are of different shapes")
    check_code(_scan(queries, n_queries, codes, n, words, first, most, places, distances))
