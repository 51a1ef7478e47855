"""Functions for farandole.run(), and a script that calls it with one of its own."""

from __future__ import annotations


def where(offset):
    import farandole

    farandole.init()
    print(f"rank {farandole.rank()} says hello")
    return offset + farandole.rank()


def large(count):
    return b"x" * count


def fails():
    import farandole

    if farandole.rank() == 1:
        raise ValueError("the function's own mistake")
    farandole.barrier()


def unsendable():
    return lambda: None


def square(number):
    import farandole

    return (farandole.rank(), number * number)


if __name__ == "__main__":
    import farandole

    print("values", farandole.run(square, (5,), np=2))
