"""The records that every client of these tests writes and reads; records_test.go has the same recipe."""
import hashlib
import struct

PARTITIONS = 3
SIZES = [0, 1, 10, 100, 33, 1000, 5000, 20000, 77, 512]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def recipe(i):
    """Record i as (partition, offset, key, value, headers)."""
    key = None if i % 11 == 10 and i % 13 != 12 else b"key-%d" % (i % 17)
    value = None
    if i % 13 != 12:
        digest = hashlib.sha256(b"%d" % i).digest()
        size = SIZES[i % len(SIZES)]
        value = (digest * (size // len(digest) + 1))[:size]
    headers = [("number", b"%d" % i), ("empty", b"")] if i % 5 == 4 else []
    return i % PARTITIONS, i // PARTITIONS, key, value, headers


def sized(b):
    return struct.pack(">i", -1) if b is None else struct.pack(">i", len(b)) + b


class Digests:
    """One SHA-256 per partition over its records in order."""

    def __init__(self):
        self.sums = [hashlib.sha256() for _ in range(PARTITIONS)]
        self.counts = [0] * PARTITIONS

    def add(self, partition, offset, key, value, headers):
        self.counts[partition] += 1
        b = struct.pack(">q", offset) + sized(key) + sized(value) + struct.pack(">i", len(headers))
        for k, v in headers:
            b += sized(k.encode()) + sized(v)
        self.sums[partition].update(b)

    def __str__(self):
        return ",".join(f"{n}:{s.hexdigest()}" for n, s in zip(self.counts, self.sums))

    def total(self):
        return sum(self.counts)


def eq(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, expected {want!r}")
