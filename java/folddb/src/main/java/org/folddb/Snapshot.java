package org.folddb;

/**
 * The whole store as it was when the snapshot was taken. Any number of threads read at it. While it
 * lives, the store keeps what it sees.
 */
public final class Snapshot implements AutoCloseable {
    private final Handle handle;

    Snapshot(long number) {
        handle = new Handle(this, number);
    }

    long handle() {
        return handle.get();
    }

    /** Ends the snapshot. Scans that read at it go on. */
    @Override
    public void close() {
        handle.release();
    }
}
