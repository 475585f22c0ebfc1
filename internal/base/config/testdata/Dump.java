// Prints the config tables of Apache Kafka and, with questions on standard input, what its
// definitions say to a value. Run by the tests with Kafka's jars on the class path.
//
//   key <kind> <name> <type> <default> <importance> <internal> <update mode> <synonyms> <validator class> <validator> <list rules>
//   answer <kind> <name> <value> ok <text form of the value> | bad <message>
//
// Fields are separated by tabs; each is base64 of UTF-8 text, or "-" for null.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.*;
import org.apache.kafka.storage.internals.log.LogConfig;

public class Dump {
    static PrintStream out;

    static String b64(Object o) {
        return o == null ? "-" : "=" + Base64.getEncoder().encodeToString(o.toString().getBytes(StandardCharsets.UTF_8));
    }

    static void line(Object... fields) {
        StringBuilder b = new StringBuilder();
        for (Object f : fields) {
            if (b.length() > 0) b.append('\t');
            b.append(b64(f));
        }
        out.println(b);
    }

    static String validatorClass(ConfigDef.Validator v) {
        return v == null ? null : v.getClass().getName().replaceAll(".*\\.", "");
    }

    /** What toString of a list validator does not say. */
    static String listRules(ConfigDef.Validator v) throws Exception {
        if (!(v instanceof ConfigDef.ValidList)) return "";
        String rules = "";
        for (String name : new String[] {"isEmptyAllowed", "isNullAllowed"}) {
            var f = v.getClass().getDeclaredField(name);
            f.setAccessible(true);
            if (f.getBoolean(v)) rules += name + " ";
        }
        return rules.trim();
    }

    static void dump(String kind, ConfigDef def, Map<String, String> modes) throws Exception {
        for (ConfigDef.ConfigKey k : new TreeMap<>(def.configKeys()).values()) {
            Object dflt = k.defaultValue;
            String text = dflt == ConfigDef.NO_DEFAULT_VALUE ? "(required)" : ConfigDef.convertToString(dflt, k.type);
            String synonyms = "";
            if (kind.equals("topic")) {
                var list = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(k.name);
                if (list != null) for (var s : list) synonyms += s.name() + " ";
            } else if (kind.equals("group")) {
                synonyms = GroupConfig.brokerSynonym(k.name).orElse("");
            } else if (kind.equals("broker")) {
                synonyms = String.join(" ", DynamicBrokerConfig.brokerConfigSynonyms(k.name, true));
            }
            line("key", kind, k.name, k.type, text, k.importance, k.internalConfig,
                modes.getOrDefault(k.name, "read-only"), synonyms.trim(), validatorClass(k.validator), k.validator == null ? null : k.validator.toString(),
                listRules(k.validator));
        }
    }

    public static void main(String[] args) throws Exception {
        out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), false, "UTF-8");
        System.setOut(System.err);
        var fields = LogConfig.class.getDeclaredField("CONFIG");
        fields.setAccessible(true);
        Map<String, ConfigDef> defs = new LinkedHashMap<>();
        defs.put("broker", AbstractKafkaConfig.CONFIG_DEF);
        defs.put("dynamic", QuotaConfig.brokerQuotaConfigs());
        defs.put("topic", (ConfigDef) fields.get(null));
        defs.put("group", GroupConfig.CONFIG_DEF);
        for (var e : defs.entrySet()) dump(e.getKey(), e.getValue(), DynamicBrokerConfig.dynamicConfigUpdateModes());

        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String q; (q = in.readLine()) != null; ) {
            String[] f = q.split("\t");
            String name = f[1], value = new String(Base64.getDecoder().decode(f[2].substring(1)), StandardCharsets.UTF_8);
            ConfigDef.ConfigKey k = defs.get(f[0]).configKeys().get(name);
            ConfigDef one = new ConfigDef().define(k);
            try {
                Object v = one.parse(Map.of(name, value)).get(name);
                line("answer", f[0], name, value, "ok", ConfigDef.convertToString(v, k.type));
            } catch (Exception e) {
                line("answer", f[0], name, value, "bad", e.getMessage());
            }
        }
        out.flush();
    }
}
