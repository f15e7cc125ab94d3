"""Binds codes.c: the scan for the nearest binary codes."""

import ctypes

import numpy as np
import numpy.typing as npt

from neardup.core.native import address, bind, check_code

_pointer, _length = ctypes.c_void_p, ctypes.c_int64
_scan = bind("nd_scan_codes", _pointer, _length, _pointer, _length, _length, _length, _length, _pointer, _pointer)


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
    check_code(
        _scan(
            address(queries, np.uint64),
            n_queries,
            address(codes, np.uint64),
            n,
            words,
            first,
            most,
            address(places, np.int64),
            address(distances, np.uint16),
        )
    )
