package org.folddb.flink.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.type.TypeReference;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Results as lines of JSON. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static String line(Map<String, Object> figures) throws IOException {
        return MAPPER.writeValueAsString(figures);
    }

    static Map<String, Object> parsed(String line) throws IOException {
        return MAPPER.readValue(line, new TypeReference<LinkedHashMap<String, Object>>() {});
    }

    static List<Map<String, Object>> lines(Path file) throws IOException {
        List<Map<String, Object>> all = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            if (line.startsWith("{")) {
                all.add(parsed(line));
            }
        }
        return all;
    }
}
