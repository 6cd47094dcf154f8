"""Computations that take long, as jobs: data in, data out.

A job is a pure function with a name. It runs in a thread of the calling process, which yields to other threads, or in
a child process with limits of time and memory.
"""
