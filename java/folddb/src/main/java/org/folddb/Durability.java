package org.folddb;

import java.util.Locale;

/** When a commit is acknowledged. */
public enum Durability {
    /** In memory: the last 10 ms or 256 KiB may be lost when the process dies. */
    BUFFERED,
    /** Given to the operating system: survives the death of the process, not a power cut. */
    PROCESS,
    /** On the disk: survives a power cut. Commits of several threads share one sync. */
    SYNC;

    final String text = name().toLowerCase(Locale.ROOT);
}
