"""Elasticsearch and OpenSearch: log lines are read from them, incidents written into them. Imports the model, errors, ports and
secrets only. The package elasticsearch, an extra, is imported when something is opened.
"""
