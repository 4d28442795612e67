package org.folddb.flink.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Arguments of the command line: {@code --name value}, of names that are known. */
final class Arguments {
    private final Map<String, String> values = new LinkedHashMap<>();

    Arguments(List<String> words, Set<String> known) {
        for (int at = 0; at < words.size(); at += 2) {
            String name = words.get(at).replaceFirst("^--", "");
            if (!words.get(at).startsWith("--") || !known.contains(name) || at + 1 == words.size()) {
                throw new IllegalArgumentException(
                        "not understood: " + words.get(at) + "; there are " + known);
            }
            values.put(name, words.get(at + 1));
        }
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    /** A whole number, which may end in K or M. */
    long number(String name, long otherwise) {
        return values.containsKey(name) ? number(values.get(name)) : otherwise;
    }

    static long number(String text) {
        String digits = text.replaceAll("[KM]$", "");
        long factor = text.endsWith("K") ? 1_000 : text.endsWith("M") ? 1_000_000 : 1;
        return Long.parseLong(digits.replace("_", "")) * factor;
    }

    List<String> list(String name, String otherwise) {
        return List.of(text(name, otherwise).split(","));
    }

    /** As words again, without some. */
    List<String> words(Set<String> without) {
        List<String> words = new ArrayList<>();
        values.forEach((name, value) -> {
            if (!without.contains(name)) {
                words.addAll(List.of("--" + name, value));
            }
        });
        return words;
    }
}
