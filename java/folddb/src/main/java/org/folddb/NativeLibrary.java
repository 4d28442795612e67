package org.folddb;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Loads the native library: the file that the system property {@code folddb.native.library} names,
 * or otherwise the one in the jar, which is copied to a temporary file first. Each class loader
 * gets a copy of its own, since the JVM loads a file only once.
 */
final class NativeLibrary {
    static final String PROPERTY = "folddb.native.library";

    private NativeLibrary() {}

    static void load() {
        String named = System.getProperty(PROPERTY);
        if (named != null) {
            System.load(Path.of(named).toAbsolutePath().toString());
            return;
        }
        String resource = "/org/folddb/native/" + platform() + "/" + System.mapLibraryName("folddb_jni");
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new UnsatisfiedLinkError(
                        "the jar of FoldDB has no native library for this platform ("
                                + resource
                                + "): build crates/jni, and name the file by -D"
                                + PROPERTY
                                + "=...");
            }
            Path copy = Files.createTempFile("folddb-", "-" + System.mapLibraryName("folddb_jni"));
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toString());
            } finally {
                Files.delete(copy); // what is loaded stays, also without its name
            }
        } catch (IOException failure) {
            UnsatisfiedLinkError error =
                    new UnsatisfiedLinkError("the native library of FoldDB cannot be copied to a temporary file");
            error.initCause(failure);
            throw error;
        }
    }

    /** The folder of this platform in the jar, such as {@code linux-x86_64}. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String name = system.contains("mac") ? "macos" : system.contains("win") ? "windows" : "linux";
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return name + "-" + (machine.equals("amd64") ? "x86_64" : machine);
    }
}
