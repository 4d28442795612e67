package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.EOFException;
import java.io.IOException;
import java.util.Random;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Values of folds as bytes: of any length, and damaged. */
class FoldValueSerializerTest {
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 65_535, 65_536, 65_537, 131_072, 200_001})
    void aValueOfAnyLengthComesBack(int length) throws IOException {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        DataOutputSerializer out = new DataOutputSerializer(16);
        FoldValueSerializer.INSTANCE.serialize(new FoldValue(bytes), out);
        out.writeInt(7);
        DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
        assertArrayEquals(bytes, FoldValueSerializer.INSTANCE.deserialize(in).bytes);
        assertEquals(7, in.readInt());
    }

    @ParameterizedTest
    @ValueSource(ints = {Integer.MAX_VALUE, 1 << 30, 11})
    void aLengthThatTheStreamHasNotTakesNoMemory(int length) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(16);
        out.writeInt(length);
        out.write(new byte[10]);
        DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
        assertThrows(EOFException.class, () -> FoldValueSerializer.INSTANCE.deserialize(in));
    }

    @Test
    void aNegativeLengthIsNamed() throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(16);
        out.writeInt(-5);
        DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
        IOException error =
                assertThrows(IOException.class, () -> FoldValueSerializer.INSTANCE.deserialize(in));
        assertEquals("the value of a fold has a length of -5", error.getMessage());
    }
}
