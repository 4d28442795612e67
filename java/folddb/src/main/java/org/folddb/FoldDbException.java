package org.folddb;

/** What failed, where and why; {@link #kind} says what a program can do about it. */
public final class FoldDbException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The kinds of errors, by what the caller can do. */
    public enum Kind {
        /** The call itself is wrong: fix it. */
        InvalidInput,
        /** There is no store at this path. */
        StoreNotFound,
        /** There is something of this name already. */
        AlreadyExists,
        /** The store has no table of this name. */
        TableNotFound,
        /** The table has different rules. */
        RulesMismatch,
        /** Another process, or another object of this one, has the store open. */
        Locked,
        /** The store was written by a newer version of FoldDB. */
        NewerFormat,
        /** The operating system refuses access to a file. */
        Permission,
        /** The disk, or the store's own budget, is full. Writes resume when there is space. */
        NoSpace,
        /** A synced commit is written and visible, but the disk has not confirmed it. */
        NotDurable,
        /** Bytes on disk are not what was written. */
        Corruption,
        /** An earlier write failed, so nothing more is written; reads go on. */
        Poisoned,
        /** The fold of the table failed on this key; others are untouched. */
        FoldFailed,
        /** What a transaction read has changed since. */
        Conflict,
        /** What a snapshot saw is no longer kept. */
        SnapshotTooOld,
        /** A feed has lost its place. */
        FeedLost,
        /** The store or the table is for reading only. */
        ReadOnly,
        /** The store, table, snapshot or scan is closed. */
        Closed,
        /** The caller has stopped this work. */
        Stopped,
        /** Any other failure of the operating system. */
        Io,
        /** A mistake in FoldDB itself. */
        Panic,
        /** A kind that this version of the Java half does not know. */
        Unknown
    }

    /** The kind. */
    private final Kind kind;

    /** What the caller can do. */
    private final String advice;

    /** Called by the native half. */
    FoldDbException(String kind, String message, String advice) {
        super(kind + ": " + message + (advice.isEmpty() ? "" : " (" + advice + ")"));
        this.kind = kindOf(kind);
        this.advice = advice;
    }

    private static Kind kindOf(String name) {
        for (Kind kind : Kind.values()) {
            if (kind.name().equals(name)) {
                return kind;
            }
        }
        return Kind.Unknown;
    }

    /**
     * The kind of the error.
     *
     * @return the kind
     */
    public Kind kind() {
        return kind;
    }

    /**
     * What the caller can do.
     *
     * @return an imperative sentence; empty where the message says it all
     */
    public String advice() {
        return advice;
    }
}
