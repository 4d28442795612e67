package org.folddb;

import java.util.Objects;

/**
 * A file of a backup. Whoever keeps backups elsewhere needs to send an immutable file only once: one
 * of the same name, length and hash in another backup of the same store is the same file.
 */
public final class BackupFile {
    private final String name;
    private final String role;
    private final boolean isImmutable;
    private final long length;
    private final String hash;

    private BackupFile(String name, String role, boolean isImmutable, long length, String hash) {
        this.name = name;
        this.role = role;
        this.isImmutable = isImmutable;
        this.length = length;
        this.hash = hash;
    }

    static BackupFile parse(String line) {
        String[] words = line.split(" ", 5);
        return new BackupFile(
                words[4], words[0], Boolean.parseBoolean(words[1]), Long.parseLong(words[2]), words[3]);
    }

    /**
     * Its path within the directory of the backup.
     *
     * @return the path, with a slash between folder and file
     */
    public String name() {
        return name;
    }

    /**
     * What it is: {@code List}, {@code Format}, {@code Manifest}, {@code Log}, {@code Part}, {@code
     * Values} or {@code Index}.
     *
     * @return the role
     */
    public String role() {
        return role;
    }

    /**
     * Whether its bytes never change.
     *
     * @return true for parts, values and indexes
     */
    public boolean isImmutable() {
        return isImmutable;
    }

    /**
     * Its length.
     *
     * @return bytes
     */
    public long length() {
        return length;
    }

    /** Whether the other has the same name, length and hash. */
    @Override
    public boolean equals(Object other) {
        return other instanceof BackupFile
                && name.equals(((BackupFile) other).name)
                && length == ((BackupFile) other).length
                && hash.equals(((BackupFile) other).hash);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, length, hash);
    }

    @Override
    public String toString() {
        return role + " " + name + ", " + length + " bytes";
    }
}
