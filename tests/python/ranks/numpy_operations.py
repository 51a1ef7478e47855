"""farandole.numpy: any number of ranks."""

from __future__ import annotations

import numpy

import cases
import farandole.numpy as fnp
from cases import raises

fnp.init()
RANK, SIZE = fnp.rank(), fnp.size()
DTYPES = ["uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64"]


def case_allreduce():
    for dtype in DTYPES:
        data = (numpy.arange(6).reshape(2, 3) + RANK).astype(dtype)
        expected = sum(numpy.arange(6).reshape(2, 3) + r for r in range(SIZE))
        got = fnp.allreduce(data, op=fnp.Sum)
        assert got.dtype == dtype and got.shape == (2, 3) and (got == expected).all()
    assert fnp.allreduce(numpy.float64(RANK)) == (SIZE - 1) / 2
    assert fnp.allreduce(numpy.complex64(1j), op=fnp.Sum) == SIZE * 1j
    # Not contiguous, and left alone.
    wide = numpy.arange(12.0).reshape(3, 4)
    assert (fnp.allreduce(wide.T) == wide.T).all() and wide[1, 1] == 5
    data = numpy.ones(4)
    assert fnp.allreduce_(data, op=fnp.Sum) is data and (data == SIZE).all()
    handle = fnp.allreduce_async(numpy.ones(2), op=fnp.Max, name="max")
    assert (handle.wait(30) == 1).all() and handle.done()
    both = fnp.grouped_allreduce([numpy.ones(2), numpy.ones(3, "int32")], op=fnp.Sum, name="both")
    assert [each.tolist() for each in both] == [[SIZE] * 2, [SIZE] * 3]


def case_others():
    got = fnp.allgather(numpy.full((RANK + 1, 2), RANK, "uint32"))
    assert got[:, 0].tolist() == [r for r in range(SIZE) for _ in range(r + 1)]
    assert (fnp.broadcast(numpy.arange(3) * RANK, SIZE - 1) == numpy.arange(3) * (SIZE - 1)).all()
    got, splits = fnp.alltoall(numpy.arange(SIZE * 2), splits=[2] * SIZE)
    assert got.tolist() == [RANK * 2, RANK * 2 + 1] * SIZE and splits == (2,) * SIZE
    assert fnp.reducescatter(numpy.arange(float(SIZE)), op=fnp.Sum).tolist() == [SIZE * RANK]
    assert fnp.broadcast_object({"rank": RANK}, SIZE - 1) == {"rank": SIZE - 1}
    assert fnp.allgather_object("r" * RANK) == ["r" * r for r in range(SIZE)]


def case_shared():
    data = fnp.shared((3, 4), "float64")
    data += RANK
    fnp.allreduce_(data, op=fnp.Sum)
    assert (data == SIZE * (SIZE - 1) / 2).all()


def case_errors():
    with raises(ValueError, "'text'", "<U1"):
        fnp.allreduce(numpy.array(["a"]), name="text")
    with raises(ValueError, ">f4"):
        fnp.allreduce(numpy.ones(2, ">f4"))
    with raises(ValueError, "contiguous"):
        fnp.allreduce_(numpy.ones((2, 3)).T)

    class Stubborn:
        def __reduce__(self):
            raise TypeError("cannot be pickled")

    with raises(TypeError if RANK == 0 else RuntimeError, "pickle"):
        fnp.broadcast_object(Stubborn() if RANK == 0 else None, 0)


cases.run(globals())
