package org.opensearch.plugins;

import java.util.List;

/** What OpenSearch 2 makes of the class loaders of plugins that extend each other; here none does. Its jar is in no registry. */
public class ExtendedPluginsClassLoader extends ClassLoader {
    private final List<ClassLoader> extended;

    private ExtendedPluginsClassLoader(ClassLoader parent, List<ClassLoader> extended) {
        super(parent);
        this.extended = extended;
    }

    /** Return a loader that asks its parent first, and then those of the plugins that are extended. */
    public static ExtendedPluginsClassLoader create(ClassLoader parent, List<ClassLoader> extended) {
        return new ExtendedPluginsClassLoader(parent, extended);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        for (ClassLoader loader : extended) {
            try {
                return loader.loadClass(name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }
}
