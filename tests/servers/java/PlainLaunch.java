import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;

/** As Launch, of servers that load their plugins by themselves: Elasticsearch 7, and OpenSearch, which is called otherwise. */
public class PlainLaunch {
    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder().put("path.home", arguments[0]);
        for (int i = 1; i < arguments.length; i++) {
            int at = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, at), arguments[i].substring(at + 1));
        }
        Environment environment = new Environment(settings.build(), Path.of(arguments[0], "config"));
        LogConfigurator.registerErrorListener();
        LogConfigurator.setNodeName("n1");
        LogConfigurator.configure(environment);
        Node node = new Node(environment);
        node.start();
        new CountDownLatch(1).await();
    }
}
