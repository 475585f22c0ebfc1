// Starts Kafka's own configuration object from properties files and tells whether it takes them.
// Input: one base64 text a line. Output a line each: "ok" or the message of the exception.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Check {
    static String b64(String s) {
        return s == null ? "-" : "=" + Base64.getEncoder().encodeToString(s.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            var p = new Properties();
            p.load(new ByteArrayInputStream(Base64.getDecoder().decode(line)));
            try {
                var c = kafka.server.KafkaConfig.fromProps(p, false);
                var derived = new StringBuilder();
                derived.append("roll=").append(c.logRollTimeMillis()).append(" retention=").append(c.logRetentionTimeMillis());
                derived.append(" flush=").append(c.logFlushIntervalMs()).append(" dirs=").append(c.logDirs()).append(" metadata=").append(c.metadataLogDir());
                derived.append(" interbroker=").append(c.interBrokerListenerName().value()).append("/").append(c.interBrokerSecurityProtocol());
                derived.append(" broker="); endpoints(derived, c.effectiveAdvertisedBrokerListeners());
                derived.append(" controller="); endpoints(derived, c.effectiveAdvertisedControllerListeners());
                out.println(b64("ok") + "\t" + b64(derived.toString()));
            } catch (Throwable e) {
                out.println(b64("bad") + "\t" + b64(e.getMessage()));
            }
        }
        out.flush();
    }

    static void endpoints(StringBuilder b, scala.collection.Seq<org.apache.kafka.common.Endpoint> seq) {
        for (int i = 0; i < seq.size(); i++) {
            var e = seq.apply(i);
            b.append(e.listener()).append("://").append(e.host() == null ? "" : e.host()).append(":").append(e.port()).append("/").append(e.securityProtocol()).append(",");
        }
    }
}
