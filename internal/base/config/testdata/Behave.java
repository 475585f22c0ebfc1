// Asks Apache Kafka's classes how configs are described and checked. Input: a command and its
// arguments a line, tab separated, arguments base64; maps are the text of a properties file.
//
//   describe static broker cluster topic group   -> "entry" lines, then "end"
//   topic static existing proposed | group static proposed | metrics name proposed
//   broker static broker cluster proposed perBroker|cluster
//                                                -> "ok", or "bad", the exception's class and message
import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.*;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;
import kafka.server.*;

public class Behave {
    static PrintStream out;

    static String b64(Object o) {
        return o == null ? "-" : "=" + Base64.getEncoder().encodeToString(o.toString().getBytes(StandardCharsets.UTF_8));
    }

    static void line(Object... f) {
        var b = new StringBuilder();
        for (Object o : f) b.append(b.length() > 0 ? "\t" : "").append(b64(o));
        out.println(b);
    }

    static String text(String s) { return new String(Base64.getDecoder().decode(s), StandardCharsets.UTF_8); }

    static Properties props(String s) throws Exception {
        var p = new Properties();
        p.load(new StringReader(text(s)));
        return p;
    }

    @SuppressWarnings("unchecked")
    static Map<String, String> map(Properties p) { return (Map<String, String>) (Map<?, ?>) p; }

    static KafkaConfig config(Properties s, Properties broker, Properties cluster) {
        var c = KafkaConfig.fromProps(s, false);
        c.dynamicConfig().initialize(scala.Option.empty());
        c.dynamicConfig().updateDefaultConfig(cluster, false);
        c.dynamicConfig().updateBrokerConfig(c.brokerId(), broker, false);
        return c;
    }

    static Object proxy(Class<?> type, InvocationHandler h) {
        return Proxy.newProxyInstance(Behave.class.getClassLoader(), new Class<?>[] {type}, h);
    }

    static void describe(String[] f) throws Exception {
        var c = config(props(f[1]), props(f[2]), props(f[3]));
        Properties topic = props(f[4]), group = props(f[5]);
        Constructor<?> make = ConfigHelper.class.getConstructors()[0];
        Object[] args = new Object[3];
        for (int i = 0; i < 3; i++) {
            Class<?> t = make.getParameterTypes()[i];
            if (t == KafkaConfig.class) args[i] = c;
            else args[i] = proxy(t, (self, m, a) -> switch (m.getName()) {
                case "contains" -> true;
                case "topicConfig" -> topic;
                case "groupConfig" -> group;
                case "config" -> ((ConfigResource) a[0]).type() == ConfigResource.Type.TOPIC ? topic : group;
                default -> throw new UnsupportedOperationException(m.getName());
            });
        }
        var helper = (ConfigHelper) make.newInstance(args);
        ask(helper, "topic", ConfigResource.Type.TOPIC, "t");
        ask(helper, "broker", ConfigResource.Type.BROKER, String.valueOf(c.brokerId()));
        ask(helper, "cluster", ConfigResource.Type.BROKER, "");
        ask(helper, "group", ConfigResource.Type.GROUP, "g");
        line("end");
    }

    static void ask(ConfigHelper helper, String kind, ConfigResource.Type type, String name) {
        var resource = new DescribeConfigsRequestData.DescribeConfigsResource().setResourceType(type.id()).setResourceName(name);
        var list = scala.jdk.javaapi.CollectionConverters.asScala(List.of(resource)).toList();
        var result = helper.describeConfigs(list, true, false).apply(0);
        if (result.errorCode() != 0) line("entry", kind, "error " + result.errorCode() + " " + result.errorMessage());
        result.configs().stream().sorted(Comparator.comparing(e -> e.name())).forEach(e -> {
            var synonyms = new StringBuilder();
            for (var s : e.synonyms()) synonyms.append(s.name()).append("=").append(s.value()).append("@").append(s.source()).append(" ");
            line("entry", kind, e.name(), e.value(), e.configType(), e.configSource(), e.readOnly(), e.isSensitive(), synonyms.toString());
        });
    }

    public static void main(String[] args) throws Exception {
        out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), false, "UTF-8");
        System.setOut(System.err);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String l; (l = in.readLine()) != null; ) {
            String[] f = l.split("\t", -1);
            if (f[0].equals("describe")) {
                describe(f);
                continue;
            }
            try {
                switch (f[0]) {
                    case "topic" -> {
                        var c = config(props(f[1]), new Properties(), new Properties());
                        LogConfig.validate(map(props(f[2])), map(props(f[3])), c.extractLogConfigMap(), c.remoteLogManagerConfig().isRemoteStorageSystemEnabled());
                    }
                    case "group" -> {
                        var c = config(props(f[1]), new Properties(), new Properties());
                        GroupConfig.validate(map(props(f[2])), c.groupCoordinatorConfig(), c.shareGroupConfig());
                    }
                    case "metrics" -> ClientMetricsConfigs.validate(text(f[1]), props(f[2]));
                    case "broker" -> config(props(f[1]), props(f[2]), props(f[3])).dynamicConfig().validate(props(f[4]), text(f[5]).equals("perBroker"));
                }
                line("ok");
            } catch (Throwable e) {
                line("bad", e.getClass().getSimpleName(), e.getMessage());
            }
        }
        out.flush();
    }
}
