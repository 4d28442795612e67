package org.folddb.flink;

import java.time.Duration;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.MemorySize;

/** The options of the backend, all of which begin with {@code state.backend.folddb}. */
public final class FoldDbOptions {
    /** Where stores are while a task runs. */
    public static final ConfigOption<String> LOCAL_DIRECTORY =
            ConfigOptions.key("state.backend.folddb.localdir")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "The absolute path of the local directory for the stores of running tasks."
                                    + " By default the temporary directories of the task manager.");

    /** Whether the memory is the managed memory of the slot. */
    public static final ConfigOption<Boolean> MANAGED_MEMORY =
            ConfigOptions.key("state.backend.folddb.memory.managed")
                    .booleanType()
                    .defaultValue(true)
                    .withDescription(
                            "Whether all stores of a slot share the managed memory that Flink gives to"
                                    + " its state backend. Otherwise each has a budget of its own.");

    /** The budget of a store that does not use managed memory. */
    public static final ConfigOption<MemorySize> MEMORY =
            ConfigOptions.key("state.backend.folddb.memory.fixed-per-store")
                    .memoryType()
                    .defaultValue(MemorySize.ofMebiBytes(64))
                    .withDescription(
                            "The budget of each store for memtables and cache, in bytes, where managed"
                                    + " memory is not used.");

    /** How aggregating states add. */
    public static final ConfigOption<Adding> AGGREGATING =
            ConfigOptions.key("state.backend.folddb.aggregating")
                    .enumType(Adding.class)
                    .defaultValue(Adding.CHECKED)
                    .withDescription(
                            "How aggregating states add: CHECKED adds blind once the first inputs have"
                                    + " shown that the merge of the function agrees with its add;"
                                    + " BLIND adds blind from the first on; READING reads before each"
                                    + " add, as other backends do.");

    /** How the rows of new states are compressed. */
    public static final ConfigOption<Compression> COMPRESSION =
            ConfigOptions.key("state.backend.folddb.compression")
                    .enumType(Compression.class)
                    .defaultValue(Compression.NONE)
                    .withDescription(
                            "How the rows of states are compressed on the disk and in checkpoints:"
                                    + " NONE, or LZ4, which makes checkpoints smaller and reads dearer."
                                    + " A state that is restored from an incremental checkpoint keeps"
                                    + " what it had.");

    /** How often the log says how a store is. */
    public static final ConfigOption<Duration> REPORT_INTERVAL =
            ConfigOptions.key("state.backend.folddb.report-interval")
                    .durationType()
                    .defaultValue(Duration.ZERO)
                    .withDescription(
                            "How often the log of a task manager has, at INFO, the figures of each"
                                    + " store and the advice of its doctor. Zero is never.");

    /** How an aggregating state adds. */
    public enum Adding {
        /** Blind, once the function has shown that its merge agrees with its add. */
        CHECKED,
        /** Blind from the first input on. */
        BLIND,
        /** By reading before each add. */
        READING
    }

    /** How rows are compressed. */
    public enum Compression {
        /** Not at all. */
        NONE,
        /** By LZ4, in blocks. */
        LZ4
    }

    private FoldDbOptions() {}
}
