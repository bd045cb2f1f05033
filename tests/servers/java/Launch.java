import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** Runs one node of Elasticsearch from its jars, without the checks of its own start script. Arguments: HOME key=value... */
public class Launch {
    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder().put("path.home", arguments[0]);
        for (int i = 1; i < arguments.length; i++) {
            int at = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, at), arguments[i].substring(at + 1));
        }
        Environment environment = new Environment(settings.build(), Path.of(arguments[0], "config"));
        LogConfigurator.registerErrorListener();
        LogConfigurator.setNodeName("n1");
        LogConfigurator.configure(environment, true);
        Node node = new Node(environment, PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(environment.modulesDir()/*9*/, false/**/),
            PluginsLoader.loadPluginsBundles(environment.pluginsDir()/*9*/, false/**/),
            Map.of(),
            false));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        node.start();
        new CountDownLatch(1).await();
    }
}
