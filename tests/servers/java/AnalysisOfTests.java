package tests;

import java.util.Map;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.core.KeywordTokenizer;
import org.elasticsearch.index.analysis.AbstractTokenFilterFactory;
import org.elasticsearch.index.analysis.AbstractTokenizerFactory;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * Has the names of analysis that the index of API keys asks for; the module that holds them is in no registry. Nobody searches
 * by them here.
 */
public class AnalysisOfTests extends Plugin implements AnalysisPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        AnalysisProvider<TokenFilterFactory> provider = (index, environment, name, settings) -> new AbstractTokenFilterFactory(name) {
            @Override
            public TokenStream create(TokenStream tokens) {
                return tokens;
            }
        };
        return Map.of("pattern_capture", provider, "unique", provider, "lowercase", provider);
    }

    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email", (index, environment, name, settings) -> new AbstractTokenizerFactory(name) {
            @Override
            public Tokenizer create() {
                return new KeywordTokenizer();
            }
        });
    }
}
