package org.folddb;

/**
 * A budget of memory, with a cache and background threads, for all stores of a process that are
 * opened with it. It lives as long as a store uses it.
 */
public final class SharedMemory implements AutoCloseable {
    private final Handle handle;

    /**
     * A budget.
     *
     * @param bytes how much it is, at least 4 MiB
     */
    public SharedMemory(long bytes) {
        handle = new Handle(this, Native.shared(bytes));
    }

    /**
     * Bytes that memtables and caches of all its stores hold now.
     *
     * @return the bytes
     */
    public long usedBytes() {
        return Native.sharedUsed(handle.get());
    }

    long handle() {
        return handle.get();
    }

    /** Ends this object. Stores that were opened with it go on sharing the budget. */
    @Override
    public void close() {
        handle.release();
    }
}
