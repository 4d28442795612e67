package org.folddb.flink;

import java.io.IOException;
import java.util.Arrays;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Writes the value of a fold as its length (int) and its bytes. */
public final class FoldValueSerializer extends TypeSerializerSingleton<FoldValue> {
    private static final long serialVersionUID = 1L;

    /** The one there is. */
    public static final FoldValueSerializer INSTANCE = new FoldValueSerializer();

    private static final int FIRST_BYTES = 64 << 10;

    private FoldValueSerializer() {}

    @Override
    public boolean isImmutableType() {
        return false;
    }

    @Override
    public FoldValue createInstance() {
        return new FoldValue();
    }

    @Override
    public FoldValue copy(FoldValue from) {
        return new FoldValue(from.bytes.clone());
    }

    @Override
    public FoldValue copy(FoldValue from, FoldValue reuse) {
        return copy(from);
    }

    @Override
    public int getLength() {
        return -1;
    }

    @Override
    public void serialize(FoldValue value, DataOutputView target) throws IOException {
        target.writeInt(value.bytes.length);
        target.write(value.bytes);
    }

    @Override
    public FoldValue deserialize(DataInputView source) throws IOException {
        int length = source.readInt();
        if (length < 0) {
            throw new IOException("the value of a fold has a length of " + length);
        }
        return new FoldValue(read(source, length));
    }

    /** Takes memory as bytes come, so that a damaged length takes none. */
    private static byte[] read(DataInputView source, int length) throws IOException {
        byte[] bytes = new byte[Math.min(length, FIRST_BYTES)];
        int read = 0;
        while (true) {
            source.readFully(bytes, read, bytes.length - read);
            read = bytes.length;
            if (read == length) {
                return bytes;
            }
            bytes = Arrays.copyOf(bytes, (int) Math.min(length, 2L * read));
        }
    }

    @Override
    public FoldValue deserialize(FoldValue reuse, DataInputView source) throws IOException {
        return deserialize(source);
    }

    @Override
    public void copy(DataInputView source, DataOutputView target) throws IOException {
        int length = source.readInt();
        target.writeInt(length);
        target.write(source, length);
    }

    @Override
    public TypeSerializerSnapshot<FoldValue> snapshotConfiguration() {
        return new Snapshot();
    }

    /** What savepoints say of it. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<FoldValue> {
        /** For Flink, which makes one by reflection. */
        public Snapshot() {
            super(() -> INSTANCE);
        }
    }
}
