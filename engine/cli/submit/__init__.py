"""The file that spark-submit is given. It has a folder of its own, since Python finds modules beside the file that it runs."""
