// Compares messages with Kafka's own classes. One question per line of standard input:
//
//   name TAB version TAB hex TAB json    are these bytes and this JSON the same message?
//   name TAB version TAB hex TAB         does Kafka read these bytes and write them again the same?
//   name TAB version TAB hex TAB ?       does Kafka accept these bytes? ("yes" or "no" and its reason)
//
// and one answer: "ok", or what differs.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

public class Oracle {
    static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
    };

    static final Map<String, Class<?>> CLASSES = new HashMap<>();
    static final ObjectMapper JSON = new ObjectMapper();

    static Class<?> find(String name) throws Exception {
        Class<?> known = CLASSES.get(name);
        if (known != null) {
            return known;
        }
        for (String p : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) {
                try {
                    Class<?> c = Class.forName(p + name + suffix);
                    CLASSES.put(name, c);
                    return c;
                } catch (ClassNotFoundException e) {
                    // the next one
                }
            }
        }
        throw new Exception("no class for " + name);
    }

    static byte[] write(Message m, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buf = ByteBuffer.allocate(m.size(cache, version));
        m.write(new ByteBufferAccessor(buf), cache, version);
        if (buf.hasRemaining()) {
            throw new IllegalStateException(buf.remaining() + " bytes less than its size");
        }
        return buf.array();
    }

    static Message read(Class<?> c, short version, ByteBuffer buf) throws Exception {
        Message m = (Message) c.getConstructor().newInstance();
        m.read(new ByteBufferAccessor(buf), version);
        return m;
    }

    static String answer(String[] q) throws Exception {
        Class<?> c = find(q[0]);
        short version = Short.parseShort(q[1]);
        ByteBuffer buf = ByteBuffer.wrap(HexFormat.of().parseHex(q[2]));
        Message fromBytes;
        try {
            fromBytes = read(c, version, buf);
        } catch (RuntimeException | InstantiationException e) {
            if (q[3].equals("?")) {
                return "no " + e;
            }
            throw e;
        }
        if (q[3].equals("?")) {
            return "yes";
        }
        if (buf.hasRemaining()) {
            return buf.remaining() + " bytes left over";
        }
        String again = HexFormat.of().formatHex(write(fromBytes, version));
        if (!again.equals(q[2])) {
            return "written again: " + again;
        }
        if (q[3].isEmpty()) {
            return "ok";
        }
        JsonNode node = JSON.readTree(q[3]);
        Method convert = Class.forName(c.getName() + "JsonConverter").getMethod("read", JsonNode.class, short.class);
        Message fromJson = (Message) convert.invoke(null, node, version);
        String written = HexFormat.of().formatHex(write(fromJson, version));
        if (!written.equals(q[2])) {
            return "from JSON: " + written;
        }
        return "ok";
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            String reply;
            try {
                reply = answer(line.split("\t", -1));
            } catch (InvocationTargetException e) {
                reply = "failed: " + e.getCause();
            } catch (Throwable e) {
                reply = "failed: " + e;
            }
            out.println(reply.replace('\n', ' '));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }
}
