"""farandole.run on the machines named on the command line; started there as an ordinary program."""

import sys

import farandole


def work(offset):
    import socket

    import numpy

    import farandole.numpy as fnp

    fnp.init()
    total = fnp.allreduce(numpy.full(2, float(offset + fnp.rank())), op=fnp.Sum)
    return socket.gethostname(), total.tolist()


if __name__ == "__main__":
    print(farandole.run(work, args=(5,), np=2, hosts=sys.argv[1]))
