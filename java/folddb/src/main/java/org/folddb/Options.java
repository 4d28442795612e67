package org.folddb;

import java.util.ArrayList;
import java.util.List;

/** The settings of a store. They are not stored: each opening chooses them. */
public final class Options {
    private final List<String> settings = new ArrayList<>();

    SharedMemory shared;

    /** Options with every default. */
    public Options() {}

    /**
     * The memory for memtables and the cache.
     *
     * @param bytes the budget, in bytes
     * @return these options
     */
    public Options memoryBytes(long bytes) {
        return set("memory_bytes", Long.toString(bytes));
    }

    /**
     * How durable the writes of a table are, and commits that name no durability of their own.
     *
     * @param durability when they are acknowledged
     * @return these options
     */
    public Options durability(Durability durability) {
        this.durability = durability;
        return set("durability", durability.text);
    }

    Durability durability = Durability.PROCESS;

    /**
     * Lets all stores that are opened with the same budget share its memory, cache and threads.
     *
     * @param shared the budget
     * @return these options
     */
    public Options shared(SharedMemory shared) {
        this.shared = shared;
        return this;
    }

    /**
     * Sets one setting by its name in Rust: sizes are in bytes, times in milliseconds, and {@code
     * none} is no bound. {@code memory_bytes}, {@code disk_bytes_max}, {@code disk_reserve_bytes},
     * {@code snapshot_age_max_ms}, {@code deletes_age_max_ms}, {@code durability}, {@code
     * background}, {@code merge_threads}, {@code merge_factor}, {@code background_nice}, {@code
     * part_bytes}, {@code open_files_max}, {@code segment_bytes}. A wrong name or value is refused
     * when a store is opened.
     *
     * @param name the name
     * @param value the value
     * @return these options
     */
    public Options set(String name, String value) {
        settings.add(name + "=" + value);
        return this;
    }

    String[] settings() {
        return settings.toArray(new String[0]);
    }

    long sharedHandle() {
        return shared == null ? 0 : shared.handle();
    }
}
